#!/bin/sh
# Brings the Flight SQL JDBC driver, at a pinned version, into a folder; installs Java and Maven (Debian) if they are missing.
# Usage: setup_jdbc.sh FOLDER
set -eu
version=18.3.0
folder=$1
jar=$folder/flight-sql-jdbc-driver-$version.jar
if ! command -v javac >/dev/null || ! command -v mvn >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends openjdk-17-jdk-headless maven >/dev/null
fi
if [ ! -f "$jar" ]; then
    mkdir -p "$folder"
    # The plugin's version too, so that it does not change by itself.
    mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
        -Dartifact="org.apache.arrow:flight-sql-jdbc-driver:$version" -DoutputDirectory="$folder"
fi
