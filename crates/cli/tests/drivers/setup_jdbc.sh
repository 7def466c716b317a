#!/bin/sh
# Brings the JDBC drivers of Flight SQL and of PostgreSQL, at pinned versions, into a folder; installs Java and Maven (Debian) if they are
# missing. Usage: setup_jdbc.sh FOLDER
set -eu
folder=$1
if ! command -v javac >/dev/null || ! command -v mvn >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends openjdk-17-jdk-headless maven >/dev/null
fi
mkdir -p "$folder"
for artifact in org.apache.arrow:flight-sql-jdbc-driver:18.3.0 org.postgresql:postgresql:42.7.11; do
    name=${artifact#*:}
    if [ ! -f "$folder/${name%:*}-${name#*:}.jar" ]; then
        # The plugin's version too, so that it does not change by itself; the jar alone.
        mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
            -Dartifact="$artifact" -DoutputDirectory="$folder"
    fi
done
