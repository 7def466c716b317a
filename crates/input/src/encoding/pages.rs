//! Code pages of DOS, which the Encoding Standard does not have, and programs still write: 437 of the United States, 850 of
//! western Europe, 852 of central Europe.

/// A code page of DOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DosPage {
    /// The page of the United States.
    Cp437,
    /// The page of western Europe.
    Cp850,
    /// The page of central Europe.
    Cp852,
}

impl DosPage {
    /// All code pages that labels can name.
    pub const ALL: [DosPage; 3] = [DosPage::Cp437, DosPage::Cp850, DosPage::Cp852];

    /// The name, as the flag takes it.
    pub fn name(self) -> &'static str {
        match self {
            DosPage::Cp437 => "cp437",
            DosPage::Cp850 => "cp850",
            DosPage::Cp852 => "cp852",
        }
    }

    /// The page of a label in lower case: `cp850`, `ibm850` or `850`.
    pub fn of_label(label: &str) -> Option<Self> {
        let number = |page: &DosPage| page.name().trim_start_matches("cp");
        let bare = label.strip_prefix("cp").or(label.strip_prefix("ibm")).unwrap_or(label);
        DosPage::ALL.into_iter().find(|page| number(page) == bare)
    }

    /// The characters of the bytes from 0x80 on.
    pub fn upper(self) -> &'static [char; 128] {
        match self {
            DosPage::Cp437 => &CP437,
            DosPage::Cp850 => &CP850,
            DosPage::Cp852 => &CP852,
        }
    }
}

/// Appends the text of bytes of a page.
pub(super) fn decode_page(page: DosPage, bytes: &[u8], text: &mut Vec<u8>) {
    let upper = page.upper();
    let mut room = [0; 4];
    for byte in bytes {
        match byte.checked_sub(0x80) {
            None => text.push(*byte),
            Some(index) => {
                let character = upper[usize::from(index)].encode_utf8(&mut room);
                text.extend_from_slice(character.as_bytes());
            }
        }
    }
}

#[rustfmt::skip]
const CP437: [char; 128] = [
    'Ç', 'ü', 'é', 'â', 'ä', 'à', 'å', 'ç', 'ê', 'ë', 'è', 'ï', 'î', 'ì', 'Ä', 'Å',
    'É', 'æ', 'Æ', 'ô', 'ö', 'ò', 'û', 'ù', 'ÿ', 'Ö', 'Ü', '¢', '£', '¥', '₧', 'ƒ',
    'á', 'í', 'ó', 'ú', 'ñ', 'Ñ', 'ª', 'º', '¿', '⌐', '¬', '½', '¼', '¡', '«', '»',
    '░', '▒', '▓', '│', '┤', '╡', '╢', '╖', '╕', '╣', '║', '╗', '╝', '╜', '╛', '┐',
    '└', '┴', '┬', '├', '─', '┼', '╞', '╟', '╚', '╔', '╩', '╦', '╠', '═', '╬', '╧',
    '╨', '╤', '╥', '╙', '╘', '╒', '╓', '╫', '╪', '┘', '┌', '█', '▄', '▌', '▐', '▀',
    'α', 'ß', 'Γ', 'π', 'Σ', 'σ', 'µ', 'τ', 'Φ', 'Θ', 'Ω', 'δ', '∞', 'φ', 'ε', '∩',
    '≡', '±', '≥', '≤', '⌠', '⌡', '÷', '≈', '°', '∙', '·', '√', 'ⁿ', '²', '■', '\u{a0}',
];
#[rustfmt::skip]
const CP850: [char; 128] = [
    'Ç', 'ü', 'é', 'â', 'ä', 'à', 'å', 'ç', 'ê', 'ë', 'è', 'ï', 'î', 'ì', 'Ä', 'Å',
    'É', 'æ', 'Æ', 'ô', 'ö', 'ò', 'û', 'ù', 'ÿ', 'Ö', 'Ü', 'ø', '£', 'Ø', '×', 'ƒ',
    'á', 'í', 'ó', 'ú', 'ñ', 'Ñ', 'ª', 'º', '¿', '®', '¬', '½', '¼', '¡', '«', '»',
    '░', '▒', '▓', '│', '┤', 'Á', 'Â', 'À', '©', '╣', '║', '╗', '╝', '¢', '¥', '┐',
    '└', '┴', '┬', '├', '─', '┼', 'ã', 'Ã', '╚', '╔', '╩', '╦', '╠', '═', '╬', '¤',
    'ð', 'Ð', 'Ê', 'Ë', 'È', 'ı', 'Í', 'Î', 'Ï', '┘', '┌', '█', '▄', '¦', 'Ì', '▀',
    'Ó', 'ß', 'Ô', 'Ò', 'õ', 'Õ', 'µ', 'þ', 'Þ', 'Ú', 'Û', 'Ù', 'ý', 'Ý', '¯', '´',
    '\u{ad}', '±', '‗', '¾', '¶', '§', '÷', '¸', '°', '¨', '·', '¹', '³', '²', '■', '\u{a0}',
];
#[rustfmt::skip]
const CP852: [char; 128] = [
    'Ç', 'ü', 'é', 'â', 'ä', 'ů', 'ć', 'ç', 'ł', 'ë', 'Ő', 'ő', 'î', 'Ź', 'Ä', 'Ć',
    'É', 'Ĺ', 'ĺ', 'ô', 'ö', 'Ľ', 'ľ', 'Ś', 'ś', 'Ö', 'Ü', 'Ť', 'ť', 'Ł', '×', 'č',
    'á', 'í', 'ó', 'ú', 'Ą', 'ą', 'Ž', 'ž', 'Ę', 'ę', '¬', 'ź', 'Č', 'ş', '«', '»',
    '░', '▒', '▓', '│', '┤', 'Á', 'Â', 'Ě', 'Ş', '╣', '║', '╗', '╝', 'Ż', 'ż', '┐',
    '└', '┴', '┬', '├', '─', '┼', 'Ă', 'ă', '╚', '╔', '╩', '╦', '╠', '═', '╬', '¤',
    'đ', 'Đ', 'Ď', 'Ë', 'ď', 'Ň', 'Í', 'Î', 'ě', '┘', '┌', '█', '▄', 'Ţ', 'Ů', '▀',
    'Ó', 'ß', 'Ô', 'Ń', 'ń', 'ň', 'Š', 'š', 'Ŕ', 'Ú', 'ŕ', 'Ű', 'ý', 'Ý', 'ţ', '´',
    '\u{ad}', '˝', '˛', 'ˇ', '˘', '§', '÷', '¸', '°', '¨', '˙', 'ű', 'Ř', 'ř', '■', '\u{a0}',
];
