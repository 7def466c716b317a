//! Answers.

use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::thread::sleep;

use coload_threads::lock;

use crate::faults::Fault;
use crate::line::Line;
use crate::list::list;
use crate::objects::Objects;
use crate::request::Request;

/// The time of all versions: it tells nothing, so that ETags must.
const MODIFIED: &str = "Tue, 24 Nov 2026 00:00:00 GMT";

/// Answers a request; false when the connection ends with it.
///
/// # Errors
/// When the other end has gone.
pub fn answer(
    objects: &Mutex<Objects>,
    request: &Request,
    (fault, line): (Option<&Fault>, Option<&Line>),
    to: &mut TcpStream,
) -> io::Result<bool> {
    if let Some(line) = line {
        line.wait_for_answer();
    }
    match fault {
        Some(Fault::Status(status)) => {
            let body = format!("<Error><Code>Status{status}</Code></Error>");
            head(to, *status, &[("Content-Length", body.len().to_string())])?;
            to.write_all(if request.method == "HEAD" { b"" } else { body.as_bytes() })?;
            return Ok(true);
        }
        Some(Fault::Moved(address)) => {
            let headers = [("Content-Length", "0".to_owned()), ("Location", address.clone())];
            head(to, 302, &headers)?;
            return Ok(true);
        }
        Some(Fault::Silent(time)) => {
            sleep(*time);
            return Ok(false);
        }
        Some(Fault::Slow(time)) => sleep(*time),
        _ => {}
    }
    if request.query("list-type").is_some() {
        let body = list(&lock(objects), request.path.trim_end_matches('/'), request);
        head(to, 200, &[("Content-Length", body.len().to_string())])?;
        to.write_all(body.as_bytes())?;
        return Ok(true);
    }
    if let "PUT" | "POST" = request.method.as_str() {
        let (status, body) = write(&mut lock(objects), request);
        if let Some(Fault::Cut(_)) = fault {
            // It is done, and nobody is told.
            return Ok(false);
        }
        head(
            to,
            status,
            &[("Content-Length", body.len().to_string()), ("ETag", "\"v\"".to_owned())],
        )?;
        to.write_all(body.as_bytes())?;
        return Ok(true);
    }
    let object = lock(objects).get(&request.path);
    let Some(object) = object else {
        head(to, 404, &[("Content-Length", "0".to_owned())])?;
        return Ok(true);
    };
    let is_other = request.header("if-match").is_some_and(|etag| etag != object.etag);
    if is_other && !matches!(fault, Some(Fault::NoConditions)) {
        head(to, 412, &[("Content-Length", "0".to_owned())])?;
        return Ok(true);
    }
    let range = request.range(object.bytes).filter(|_| !matches!(fault, Some(Fault::NoParts)));
    if range.as_ref().is_some_and(|range| range.is_empty()) {
        head(to, 416, &[("Content-Length", "0".to_owned())])?;
        return Ok(true);
    }
    let part = range.clone().unwrap_or(0..object.bytes);
    let mut headers = vec![
        ("Content-Length", (part.end - part.start).to_string()),
        ("Last-Modified", MODIFIED.to_owned()),
    ];
    if !object.etag.is_empty() {
        headers.push(("ETag", object.etag.clone()));
    }
    if range.is_some() {
        let whole = format!("bytes {}-{}/{}", part.start, part.end - 1, object.bytes);
        headers.push(("Content-Range", whole));
    }
    head(to, if range.is_some() { 206 } else { 200 }, &headers)?;
    if request.method == "HEAD" {
        return Ok(true);
    }
    if let Some(Fault::Cut(percent)) = fault {
        let end = part.start + (part.end - part.start) * percent / 100;
        object.send(part.start..end, to)?;
        return Ok(false);
    }
    match line {
        Some(line) => line.chunks(part).try_for_each(|chunk| object.send(chunk, to))?,
        None => object.send(part, to)?,
    }
    Ok(true)
}

/// Puts an object, unless it must not be there and is; or removes those that a body names.
fn write(objects: &mut Objects, request: &Request) -> (u16, String) {
    if request.method == "PUT" {
        if request.header("if-none-match") == Some("*") && objects.get(&request.path).is_some() {
            return (412, String::new());
        }
        objects.put(&request.path, request.body.clone());
        return (200, String::new());
    }
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let mut told = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<DeleteResult>");
    for named in body.split("<Key>").skip(1) {
        let key = named.split("</Key>").next().unwrap_or_default();
        objects.remove(&format!("{}/{key}", request.path.trim_end_matches('/')));
        told += &format!("<Deleted><Key>{key}</Key></Deleted>");
    }
    (200, told + "</DeleteResult>")
}

fn head(to: &mut impl Write, status: u16, headers: &[(&str, String)]) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status} Answer\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    to.write_all(text.as_bytes())
}
