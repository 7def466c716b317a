//! The texts of small files, which are read when the files are looked for: a load of many of them opens each once.

/// The texts of the first inputs, as long as there is room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: Vec<u8>,
    /// Where the text of each input ends; one that is not kept is empty.
    ends: Vec<usize>,
    /// Most bytes.
    room: usize,
}

impl Texts {
    /// None yet; there is room for so many bytes.
    pub fn new(room: usize) -> Self {
        Texts { room, ..Texts::default() }
    }

    /// Keeps the text of the next input, if there is room.
    pub fn push(&mut self, text: &[u8]) {
        let taken = text.len() + size_of::<usize>();
        if self.room < taken {
            // The inputs behind it are not kept either.
            self.room = 0;
            return;
        }
        self.room -= taken;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// The text of an input, if it was kept and is not empty.
    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end]).filter(|text| !text.is_empty())
    }

    /// Bytes that they take.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_from_the_first_on() {
        let mut texts = Texts::new(5 + 3 * size_of::<usize>());
        [&b"abc"[..], b"", b"de", b"f"].into_iter().for_each(|text| texts.push(text));
        let kept: Vec<_> = (0..5).map(|number| texts.get(number)).collect();
        assert_eq!(kept, [Some(&b"abc"[..]), None, Some(b"de"), None, None]);
        texts.push(b"");
        assert_eq!(texts.get(3), None);
    }
}
