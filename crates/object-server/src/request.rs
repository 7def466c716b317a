//! Requests of HTTP/1.1, whose bodies are short.

use std::io::{self, BufRead, Read};
use std::ops::Range;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// GET, HEAD, PUT, or POST of names to delete.
    pub method: String,
    /// Decoded path without the first slash.
    pub path: String,
    /// Decoded names and values of the query.
    pub query: Vec<(String, String)>,
    /// Names in lower case and values of the headers.
    pub headers: Vec<(String, String)>,
    /// What is put.
    pub body: Vec<u8>,
}

/// Most bytes of a body.
const BODY_BYTES_MAX: u64 = 64 << 20;

impl Request {
    /// The next request of a connection; `None` when it has ended.
    pub(crate) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or("/");
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
        };
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
        let path = decode(path.trim_start_matches('/'));
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Request { method, path, query, headers, body: Vec::new() };
        let bytes = request.header("content-length").and_then(|text| text.parse::<u64>().ok());
        let bytes = bytes.unwrap_or(0).min(BODY_BYTES_MAX);
        let mut body = Vec::new();
        if reader.take(bytes).read_to_end(&mut body)? as u64 != bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        request.body = body;
        Ok(Some(request))
    }

    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A value of the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The bytes that are asked for, of an object of so many.
    pub fn range(&self, bytes: u64) -> Option<Range<u64>> {
        let (from, to) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let to = to.parse::<u64>().map_or(bytes, |last| last.saturating_add(1)).min(bytes);
        Some(from.parse().ok()?..to)
    }
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex.filter(|_| bytes[at] == b'%') {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
