//! What the format of a cell makes of its number: nothing, a date, a time, both, or a duration.
//!
//! Source: ECMA-376-1, 18.8.30 (numFmt), its list of formats that have no code, and 18.8.31 (codes).

/// What a number in a cell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// The number itself: amounts, shares and what has no format.
    #[default]
    Number,
    /// A day.
    Date,
    /// A time of day.
    Time,
    /// A day with a time.
    Moment,
    /// Hours, minutes and seconds, as many as there are.
    Duration,
}

impl Kind {
    /// The kind of a format that is known by its number and has no code.
    pub fn of_number(number: u32) -> Self {
        match number {
            14..=17 | 27..=31 | 36 | 50..=54 | 57 | 58 => Kind::Date,
            18..=21 | 32..=35 | 45 | 47 | 55 | 56 => Kind::Time,
            22 => Kind::Moment,
            46 => Kind::Duration,
            _ => Kind::Number,
        }
    }

    /// The kind of a format by its code, such as `yyyy\-mm\-dd` or `[h]:mm`: the section of positive numbers tells.
    pub fn of_code(code: &str) -> Self {
        let (mut has_day, mut has_time, mut has_month, mut is_duration) =
            (false, false, false, false);
        let mut characters = code.chars().peekable();
        while let Some(character) = characters.next() {
            match character.to_ascii_lowercase() {
                ';' => break,
                '"' => while characters.next().is_some_and(|next| next != '"') {},
                // What follows is text, or a width.
                '\\' | '_' | '*' => {
                    characters.next();
                }
                '[' => {
                    let inner: String =
                        characters.by_ref().take_while(|next| *next != ']').collect();
                    is_duration |= is_elapsed(&inner);
                }
                'a' => {
                    let rest: String =
                        characters.clone().take(4).collect::<String>().to_ascii_lowercase();
                    let marks = [("m/pm", 4), ("/p", 2)];
                    if let Some((_, length)) = marks.iter().find(|(mark, _)| rest.starts_with(mark))
                    {
                        has_time = true;
                        characters.by_ref().take(*length).for_each(drop);
                    }
                }
                'y' | 'd' => has_day = true,
                'h' | 's' => has_time = true,
                'm' => has_month = true,
                _ => {}
            }
        }
        match (is_duration, has_day || has_month && !has_time, has_time) {
            (true, ..) => Kind::Duration,
            (false, true, true) => Kind::Moment,
            (false, true, false) => Kind::Date,
            (false, false, true) => Kind::Time,
            (false, false, false) => Kind::Number,
        }
    }
}

/// Whether brackets hold a unit that counts on: `[h]`, `[mm]`, `[ss]`; others are colours, conditions and languages.
fn is_elapsed(inner: &str) -> bool {
    let inner = inner.to_ascii_lowercase();
    ['h', 'm', 's'].iter().any(|unit| !inner.is_empty() && inner.chars().all(|c| c == *unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_what_a_number_is() {
        for (code, kind) in [
            ("General", Kind::Number),
            ("0.00%", Kind::Number),
            ("#,##0.00_);[Red](#,##0.00)", Kind::Number),
            ("0.00E+00", Kind::Number),
            ("\"days\" 0", Kind::Number),
            ("0\\d", Kind::Number),
            ("_d0*d", Kind::Number),
            ("0;yyyy", Kind::Number),
            ("[$-409]#,##0.00", Kind::Number),
            ("yyyy-mm-dd", Kind::Date),
            ("[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy", Kind::Date),
            ("mmm", Kind::Date),
            ("mm/dd/yy;@", Kind::Date),
            ("h:mm AM/PM", Kind::Time),
            ("hh:mm A/P", Kind::Time),
            ("mm:ss.0", Kind::Time),
            ("yyyy\\-mm\\-dd\\Thh:mm:ss", Kind::Moment),
            ("d.m.yy h:mm", Kind::Moment),
            ("[h]:mm:ss", Kind::Duration),
            ("[mm]:ss", Kind::Duration),
            ("[Blue]h", Kind::Time),
            ("[", Kind::Number),
            ("\"", Kind::Number),
            ("\\", Kind::Number),
        ] {
            assert_eq!(Kind::of_code(code), kind, "{code}");
        }
        assert_eq!(
            [14, 20, 22, 46, 0, 49].map(Kind::of_number),
            [Kind::Date, Kind::Time, Kind::Moment, Kind::Duration, Kind::Number, Kind::Number]
        );
    }
}
