//! URLs of databases.

/// How URLs of databases begin.
const SCHEMES: [&str; 6] =
    ["postgres://", "postgresql://", "mysql://", "mariadb://", "sqlserver://", "mssql://"];

/// Whether a text is the URL of a database.
pub fn is_database_url(text: &str) -> bool {
    SCHEMES.iter().any(|scheme| text.starts_with(scheme))
}

/// A name for a file about a server.
pub fn file_name(engine: &str, host: &str, port: u16) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    format!("{engine}-{}-{port}", host.chars().map(plain).collect::<String>())
}

/// Takes parameters out of a URL: those that `is_taken`, and the URL with the others.
pub fn take_parameters(
    url: &str,
    is_taken: impl Fn(&str) -> bool,
) -> (String, Vec<(String, String)>) {
    let Some((place, query)) = url.split_once('?') else { return (url.to_owned(), Vec::new()) };
    let mut taken = Vec::new();
    let mut left = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match is_taken(name) {
            true => taken.push((name.to_owned(), decode(value))),
            false => left.push(pair),
        }
    }
    let url = match left.is_empty() {
        true => place.to_owned(),
        false => format!("{place}?{}", left.join("&")),
    };
    (url, taken)
}

/// Text with what `%` and two digits stand for.
pub fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                out.push(byte);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_taken_out_and_the_others_stay() {
        let url =
            "postgres://u:p%40@h/db?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fa%20b&x";
        let (left, taken) = take_parameters(url, |name| name.starts_with("ssl"));
        assert_eq!(left, "postgres://u:p%40@h/db?connect_timeout=3&x");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(taken, [pair("sslmode", "verify-full"), pair("sslrootcert", "/a b")]);
        assert_eq!(take_parameters("mysql://h/%", |_| true).0, "mysql://h/%");
        assert_eq!(decode("%zz%4%"), "%zz%4%");
    }
}
