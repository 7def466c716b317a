use super::*;

/// Bytes that come one by one.
struct Slow(std::io::Cursor<Vec<u8>>);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let one = buffer.len().min(1);
        self.0.read(&mut buffer[..one])
    }
}

fn told(text: &[u8]) -> Result<String> {
    let mut xml = Xml::new("part".to_owned(), Box::new(Slow(std::io::Cursor::new(text.to_vec()))));
    let mut out = Vec::new();
    loop {
        match xml.next_event()? {
            Event::Start => {
                out.extend_from_slice(b"<");
                out.extend_from_slice(xml.element());
                if let Some(value) = xml.attribute("r")? {
                    out.extend_from_slice(format!(" {value}").as_bytes());
                }
            }
            Event::End => {
                out.extend_from_slice(b">");
                out.extend_from_slice(xml.element());
            }
            Event::Text => {
                out.extend_from_slice(b"|");
                xml.append_text(&mut out)?;
            }
            Event::Done => return Ok(String::from_utf8_lossy(&out).into_owned()),
        }
    }
}

#[test]
fn elements_come_in_order() {
    for (text, expected) in [
        ("<a/>", "<a>a"),
        (
            "\u{feff}<?xml version='1.0'?>\n<a><b r = '1&gt;>' s=\"\"/>x<!-- <c> --></a>\n",
            "<a<b 1>>>b|x>a",
        ),
        ("<x:a x:r=\"7\"><![CDATA[a<&amp;]]]></x:a >", "<a 7|a<&amp;]>a"),
        ("<a r='\"'>&lt;<b></b></a>", "<a \"|<<b>b>a"),
    ] {
        assert_eq!(told(text.as_bytes()).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_damaged_is_told() {
    for text in [
        "",
        "a",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "</a>",
        "<a",
        "<a r='",
        "<a><!--",
        "<a><![CDATA[x]]",
        "<>",
        "<a/>x",
        "<!DOCTYPE a []><a/>",
        "<a>&bad;</a>",
        "<a><<b/></a>",
        "<?xml",
        "<a b></a><",
        "\u{feff}\u{feff}<a/>",
    ] {
        assert!(matches!(told(text.as_bytes()), Err(Error::Input { .. })), "{text}");
    }
    assert!(told(b"<a>\xff</a>").is_err());
    assert!(told(b"\xff\xfe<\0a\0/\0>\0").is_err());
}

#[test]
fn depth_and_length_have_limits() {
    let deep = "<a>".repeat(1_000_000);
    assert!(told(deep.as_bytes()).is_err());
    let reader = |text: &'static [u8]| {
        Xml::new("part".to_owned(), Box::new(text.chain(std::io::repeat(b'x'))))
    };
    for head in [&b"<a>"[..], b"<a r='", b"<!--", b"<a><![CDATA["] {
        let mut xml = reader(head);
        let error = loop {
            match xml.next_event() {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Limit(_)), "{error}");
        assert!(xml.buffer.capacity() < 4 * TOKEN_BYTES_MAX);
    }
}
