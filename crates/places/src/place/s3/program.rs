//! Credentials that a program tells, as `credential_process` has it: JSON on its standard output.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use coload_types::{DataType, parse_int};
use futures::lock::Mutex;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;

/// Seconds for which credentials must still hold, so that a request that is made with them comes through.
const HOLD_SECONDS: i64 = 300;

/// Asks a program, and again before what it told ends.
#[derive(Debug)]
pub struct ProgramCredentials {
    words: Vec<String>,
    told: Mutex<Option<Told>>,
}

#[derive(Debug, Clone)]
struct Told {
    credential: Arc<AwsCredential>,
    /// When they end, in seconds since 1970.
    end: Option<i64>,
}

impl ProgramCredentials {
    /// Those that a program tells: its name and its arguments.
    pub fn new(words: Vec<String>) -> Self {
        ProgramCredentials { words, told: Mutex::new(None) }
    }
}

#[async_trait]
impl CredentialProvider for ProgramCredentials {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut told = self.told.lock().await;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64);
        let holds = |told: &&Told| told.end.is_none_or(|end| end - now > HOLD_SECONDS);
        if let Some(told) = told.as_ref().filter(holds) {
            return Ok(Arc::clone(&told.credential));
        }
        let words = self.words.clone();
        let asked = tokio::task::spawn_blocking(move || ask(&words)).await;
        let asked = asked.map_err(|e| e.to_string()).and_then(|told| told);
        // As without credentials: asking again does not help.
        let refused = |e: String| object_store::Error::Unauthenticated {
            path: self.words[0].clone(),
            source: e.into(),
        };
        let new = told.insert(asked.map_err(refused)?);
        Ok(Arc::clone(&new.credential))
    }
}

/// Runs a program, and reads what it tells. What it printed is never shown, but for its last complaint.
fn ask(words: &[String]) -> Result<Told, String> {
    let [program, arguments @ ..] = words else { return Err("no program".to_owned()) };
    let mut command = Command::new(program);
    let output = command.args(arguments).stdin(Stdio::null()).output().map_err(|e| {
        format!("`{program}`, which the profile takes credentials from, cannot be started: {e}")
    })?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
        return Err(format!("`{}`: {}: {}", words.join(" "), output.status, last.trim()));
    }
    read(&output.stdout).map_err(|what| format!("`{}`: {what}", words.join(" ")))
}

/// Reads what a program told.
fn read(json: &[u8]) -> Result<Told, &'static str> {
    let value: serde_json::Value =
        serde_json::from_slice(json).map_err(|_| "what it prints is no JSON")?;
    if value["Version"].as_u64() != Some(1) {
        return Err("credentials have \"Version\": 1");
    }
    let text = |name: &str| value[name].as_str().filter(|text| !text.is_empty());
    let (Some(id), Some(secret)) = (text("AccessKeyId"), text("SecretAccessKey")) else {
        return Err("AccessKeyId or SecretAccessKey is missing");
    };
    let end = match text("Expiration") {
        Some(end) => {
            let end = parse_int(end.as_bytes(), DataType::TimestampTz);
            Some(end.map_err(|_| "Expiration is no time")?.div_euclid(1_000_000))
        }
        None => None,
    };
    let token = text("SessionToken").map(str::to_owned);
    let credential = AwsCredential { key_id: id.to_owned(), secret_key: secret.to_owned(), token };
    Ok(Told { credential: Arc::new(credential), end })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn script(text: &str) -> Vec<String> {
        ["sh", "-c", text].map(str::to_owned).to_vec()
    }

    fn get(of: &ProgramCredentials) -> Result<String, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let got = runtime.block_on(of.get_credential());
        got.map(|c| format!("{} {} {:?}", c.key_id, c.secret_key, c.token))
            .map_err(|e| e.to_string())
    }

    /// A program that tells another key each time, which ends when it is told.
    fn counting(end: &str) -> (tempfile::TempDir, ProgramCredentials) {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let told = format!(
            r#"echo x >> {0}; n=$(wc -l < {0}); printf '{{"Version":1,"AccessKeyId":"k%s","SecretAccessKey":"s"{end}}}' $n"#,
            count.display()
        );
        (folder, ProgramCredentials::new(script(&told)))
    }

    #[test]
    fn a_program_is_asked_again_before_its_credentials_end() {
        for (end, second) in [
            ("", "k1 s None"),
            (r#","Expiration":"2999-01-01T00:00:00Z","SessionToken":"""#, "k1 s None"),
            (r#","Expiration":"2020-01-01T00:00:00+02:00""#, "k2 s None"),
        ] {
            let (_folder, of) = counting(end);
            assert_eq!(get(&of).unwrap(), "k1 s None");
            assert_eq!(get(&of).unwrap(), second, "{end}");
        }
    }

    #[test]
    fn what_a_program_does_wrong_is_told_without_its_secrets() {
        for (text, told) in [
            ("echo secret", "no JSON"),
            (
                r#"echo '{"Version":2,"AccessKeyId":"secret","SecretAccessKey":"secret"}'"#,
                "\"Version\": 1",
            ),
            (r#"echo '{"Version":1,"SecretAccessKey":"x"}'"#, "is missing"),
            (
                r#"echo '{"Version":1,"AccessKeyId":"k","SecretAccessKey":"x","Expiration":"soon"}'"#,
                "no time",
            ),
            ("echo first >&2; echo 'sign in' >&2; echo >&2; exit 3", "exit status: 3: sign in"),
        ] {
            let error = get(&ProgramCredentials::new(script(text))).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let error = ask(&["/no/such".to_owned()]).unwrap_err();
        assert!(error.contains("`/no/such`, which the profile takes credentials from"), "{error}");
    }
}
