//! Profiles of Amazon's tools: the files `~/.aws/config` and `~/.aws/credentials`.
//!
//! ```text
//!   [profile lake]                 # config; [lake] in credentials
//!   region = eu-central-1
//!   services = ours                # or endpoint_url, of all services
//!   [services ours]
//!   s3 =
//!     endpoint_url = http://127.0.0.1:9000
//! ```
//!
//! Names of settings are of any case; a line that begins with a space belongs to the one before; what stands behind ` #` or
//! ` ;` is a comment. Of a setting that both files have, that of the credentials counts.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Where a variable of the environment is looked up.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a profile says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    settings: Settings,
    /// The settings of its services, as `s3.endpoint_url`.
    services: Settings,
}

type Settings = BTreeMap<String, String>;

/// How credentials come from a profile.
#[derive(Debug, PartialEq, Eq)]
pub enum Credentials {
    /// As they stand there.
    Keys {
        /// Name of the key.
        id: String,
        /// The key.
        secret: String,
        /// Token of a session.
        token: Option<String>,
    },
    /// A program tells them.
    Program(Vec<String>),
}

impl Profile {
    /// The profile that `AWS_PROFILE` names, or `default`; none if there is no default.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is no setting, a name that neither file has.
    pub fn find(environment: Environment<'_>) -> Result<Option<Self>, String> {
        let named = environment("AWS_PROFILE").or_else(|| environment("AWS_DEFAULT_PROFILE"));
        let name = named.as_deref().unwrap_or("default");
        let files = [
            ("AWS_CONFIG_FILE", ".aws/config", format!("profile {name}")),
            ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", name.to_owned()),
        ];
        let mut profile = Profile { name: name.to_owned(), ..Profile::default() };
        let mut is_there = false;
        let mut places = Vec::new();
        for (variable, path, section) in files {
            let Some(path) = path_of(environment, variable, path) else { continue };
            places.push(path.display().to_string());
            let Some(text) = text_of(&path)? else { continue };
            let mut sections = sections(&text).map_err(|e| format!("{}: {e}", path.display()))?;
            // The config may call the default by either name.
            let default = (name == "default").then(|| sections.remove("default")).flatten();
            for found in [default, sections.remove(&section)].into_iter().flatten() {
                is_there = true;
                profile.settings.extend(found);
            }
            if let Some(name) = profile.settings.get("services")
                && let Some(services) = sections.remove(&format!("services {name}"))
            {
                profile.services = services;
            }
        }
        match (is_there, named) {
            (true, _) => Ok(Some(profile)),
            (false, None) => Ok(None),
            (false, Some(name)) => {
                Err(format!("AWS_PROFILE is {name}, which is not in {}", places.join(" or ")))
            }
        }
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The region.
    pub fn region(&self) -> Option<&str> {
        self.setting("region")
    }

    /// The server that speaks S3.
    pub fn endpoint(&self) -> Option<&str> {
        let of_service = self.services.get("s3.endpoint_url").map(String::as_str);
        of_service.or_else(|| self.setting("endpoint_url"))
    }

    /// How its credentials come, if it has any. Those of roles and of people who signed in are told by Amazon's own program.
    ///
    /// # Errors
    /// A key without its secret; a command that cannot be cut into words.
    pub fn credentials(&self) -> Result<Option<Credentials>, String> {
        let asks = ["role_arn", "sso_session", "sso_start_url", "login_session"];
        if asks.iter().any(|name| self.setting(name).is_some()) {
            let words = ["aws", "configure", "export-credentials", "--format", "process"];
            let words = words.into_iter().chain(["--profile", &self.name]).map(str::to_owned);
            return Ok(Some(Credentials::Program(words.collect())));
        }
        let keys = (self.setting("aws_access_key_id"), self.setting("aws_secret_access_key"));
        match (keys, self.setting("credential_process")) {
            ((Some(id), Some(secret)), _) => {
                let token = self.setting("aws_session_token").map(str::to_owned);
                Ok(Some(Credentials::Keys { id: id.to_owned(), secret: secret.to_owned(), token }))
            }
            ((None, None), Some(command)) => {
                let words = shlex::split(command).filter(|words| !words.is_empty());
                let wrong = || format!("profile {}: quotes in credential_process", self.name);
                words.map(|words| Some(Credentials::Program(words))).ok_or_else(wrong)
            }
            ((None, None), None) => Ok(None),
            _ => Err(format!(
                "profile {}: aws_access_key_id and aws_secret_access_key go together",
                self.name
            )),
        }
    }
}

/// Where a file is: where the variable says, or in the home directory.
fn path_of(environment: Environment<'_>, variable: &str, default: &str) -> Option<PathBuf> {
    let home = environment("HOME").map(PathBuf::from);
    match environment(variable) {
        Some(path) => match (path.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => Some(home.join(rest)),
            _ => Some(PathBuf::from(path)),
        },
        None => home.map(|home| home.join(default)),
    }
}

/// The text of a file, if there is one.
fn text_of(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(e) => Err(format!("cannot read {}: {e}", path.display())),
    }
}

/// The sections of a file, with a single space between the words of their names.
fn sections(text: &str) -> Result<BTreeMap<String, Settings>, String> {
    let mut sections: BTreeMap<String, Settings> = BTreeMap::new();
    let mut section = None;
    // The setting that lines with a space in front belong to, and whether it has a value of its own.
    let mut last: Option<(String, bool)> = None;
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}", number + 1);
        let bare = without_comment(line);
        if bare.is_empty() {
            continue;
        }
        let is_nested = line.starts_with([' ', '\t']);
        if let Some(name) = bare.strip_prefix('[').filter(|_| !is_nested) {
            let name = name.strip_suffix(']').ok_or_else(|| wrong("a section without ]"))?;
            let words = name.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            let name = words.collect::<Vec<_>>().join(" ");
            sections.entry(name.clone()).or_default();
            (section, last) = (Some(name), None);
            continue;
        }
        let settings = section.as_ref().and_then(|name| sections.get_mut(name));
        let settings = settings.ok_or_else(|| wrong("a setting before the first [section]"))?;
        let parts = bare.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        match (&last, parts) {
            (Some((name, true)), _) if is_nested => {
                let value = settings.entry(name.clone()).or_default();
                value.push('\n');
                value.push_str(bare);
            }
            (Some((name, false)), Some((inner, value))) if is_nested => {
                let inner = inner.to_ascii_lowercase();
                settings.insert(format!("{name}.{inner}"), value.to_owned());
            }
            (_, Some((name, value))) if !is_nested && !name.is_empty() => {
                let name = name.to_ascii_lowercase();
                settings.insert(name.clone(), value.to_owned());
                last = Some((name, !value.is_empty()));
            }
            // A key could stand in it, so it is not shown.
            _ => return Err(wrong("it is no NAME = VALUE")),
        }
    }
    Ok(sections)
}

/// A line without the spaces around it and its comment.
fn without_comment(line: &str) -> &str {
    let bare = line.trim();
    if bare.starts_with(['#', ';']) {
        return "";
    }
    let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| bare.find(mark)).min();
    comment.map_or(bare, |at| bare[..at].trim_end())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// What the files of a home directory give, with some variables.
    fn found(
        files: &[(&str, &str)],
        variables: &[(&str, &str)],
    ) -> Result<Option<Profile>, String> {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let environment = |name: &str| match name {
            "HOME" => Some(home.path().display().to_string()),
            _ => variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()),
        };
        Profile::find(&environment).map_err(|e| e.replace(&home.path().display().to_string(), "~"))
    }

    const CONFIG: &str = "; a comment\n[default]\nRegion = eu-west-1 # here\n\n[profile  \"lake\"]\nregion=eu-central-1\n\
        services = ours\nendpoint_url = http://all\n[profile plain]\nendpoint_url = http://all\n[services ours]\ns3 =\n  \
        endpoint_url = http://s3\n\tother=1\ndynamodb =\n  endpoint_url = http://no\n[profile tool]\ncredential_process = \
        /opt/tell \"a b\" c\n[profile role]\nrole_arn = arn:1\nsource_profile = default\n[profile half]\naws_access_key_id=a\n";
    const CREDENTIALS: &str = "[default]\naws_access_key_id = A=+/\naws_secret_access_key = s;#\nregion = us-east-2\n\
        [lake]\naws_access_key_id = L\naws_secret_access_key = l\naws_session_token = t\n";
    const FILES: [(&str, &str); 2] = [(".aws/config", CONFIG), (".aws/credentials", CREDENTIALS)];

    fn keys(id: &str, secret: &str, token: Option<&str>) -> Option<Credentials> {
        let token = token.map(str::to_owned);
        Some(Credentials::Keys { id: id.to_owned(), secret: secret.to_owned(), token })
    }

    #[test]
    fn a_profile_is_what_both_files_say() {
        let default = found(&FILES, &[]).unwrap().unwrap();
        assert_eq!(default.region(), Some("us-east-2"));
        assert_eq!(default.endpoint(), None);
        assert_eq!(default.credentials().unwrap(), keys("A=+/", "s;#", None));
        let named = |name| found(&FILES, &[("AWS_PROFILE", name)]).unwrap().unwrap();
        assert_eq!(named("lake").region(), Some("eu-central-1"));
        assert_eq!(named("lake").endpoint(), Some("http://s3"));
        assert_eq!(named("lake").credentials().unwrap(), keys("L", "l", Some("t")));
        assert_eq!(named("plain").endpoint(), Some("http://all"));
        assert_eq!(named("plain").credentials().unwrap(), None);
        let program = |words: &[&str]| {
            Some(Credentials::Program(words.iter().map(|word| (*word).to_owned()).collect()))
        };
        assert_eq!(named("tool").credentials().unwrap(), program(&["/opt/tell", "a b", "c"]));
        let tells = ["aws", "configure", "export-credentials", "--format", "process"];
        let tells = [&tells[..], &["--profile", "role"]].concat();
        assert_eq!(named("role").credentials().unwrap(), program(&tells));
        let error = named("half").credentials().unwrap_err();
        assert!(error.contains("go together"), "{error}");
    }

    #[test]
    fn files_are_where_the_variables_say() {
        let files = [("here/c", "[profile x]\nregion = r\n"), ("k", "[x]\n")];
        let variables = [
            ("AWS_CONFIG_FILE", "~/here/c"),
            ("AWS_SHARED_CREDENTIALS_FILE", "~/k"),
            ("AWS_DEFAULT_PROFILE", "x"),
        ];
        assert_eq!(found(&files, &variables).unwrap().unwrap().region(), Some("r"));
        assert_eq!(found(&[], &[]).unwrap(), None);
        let error = found(&FILES, &[("AWS_PROFILE", "none")]).unwrap_err();
        let expected = "AWS_PROFILE is none, which is not in ~/.aws/config or ~/.aws/credentials";
        assert_eq!(error, expected);
    }

    #[test]
    fn lines_that_are_no_settings_are_told_but_not_shown() {
        for (text, line) in [
            ("a = 1\n", 1),
            ("[default]\nsecret\n", 2),
            ("[default\n", 1),
            ("[default]\n= secret\n", 2),
            ("[default]\ns3 =\n  secret\n", 3),
            ("[default]\n  secret = x\n", 2),
        ] {
            let error = found(&[(".aws/config", text)], &[]).unwrap_err();
            assert!(error.starts_with(&format!("~/.aws/config: line {line}: ")), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let continued = "[default]\nregion = a\n  b\n\n# x\n[default]\nother = 1\n";
        let profile = found(&[(".aws/config", continued)], &[]).unwrap().unwrap();
        assert_eq!(profile.region(), Some("a\nb"));
    }
}
