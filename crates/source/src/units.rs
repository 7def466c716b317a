//! Records of units below the names of columns, as instruments and offices write them.
//!
//! ```text
//!   Date,Temp,Rain        "TIMESTAMP","RECORD","AirTC_Avg","RH"
//!   ,°C,mm                "TS","RN","Deg C","%"
//!   2024-01-01,5.5,0.0    "","","Avg","Smp"
//! ```
//!
//! They are known by a list: texts of other kinds below names may be values of a row.

use crate::infer::has_form;
use crate::sample::Field;

/// Units and what loggers write of how a value was measured, in small letters.
const UNITS: [&str; 86] = [
    "%", "‰", "°c", "c", "deg c", "degc", "celsius", "°f", "f", "deg f", "degf", "k", "kelvin",
    "mm", "cm", "dm", "m", "km", "in", "inch", "inches", "ft", "feet", "mi", "miles", "nm", "µm",
    "um", "m2", "m²", "m^2", "ha", "km2", "km²", "l", "ml", "m3", "m³", "mg", "g", "kg", "t", "lb",
    "lbs", "s", "sec", "seconds", "ms", "min", "minutes", "h", "hours", "days", "hz", "khz", "mhz",
    "pa", "hpa", "kpa", "mbar", "bar", "psi", "m/s", "km/h", "mph", "kn", "knots", "v", "mv",
    "volts", "a", "ma", "w", "kw", "kwh", "mwh", "w/m2", "w/m²", "w/m^2", "ppm", "ppb", "µg/m³",
    "ug/m3", "deg", "degrees", "°",
];
/// What loggers of Campbell write besides.
const OF_LOGGERS: [&str; 9] = ["ts", "rn", "avg", "smp", "max", "min", "tot", "std", "wvc"];
/// Records of units below names, at most.
pub const UNIT_RECORDS_MAX: usize = 3;

/// Whether a record has units: two thirds of what is written in it at least, and no number or date.
pub fn is_units(record: &[Field<'_>]) -> bool {
    let written = || record.iter().map(|field| field.text.trim_ascii()).filter(|f| !f.is_empty());
    let units = written().filter(|field| is_unit(field)).count();
    units > 0 && units * 3 >= written().count() * 2 && !written().any(has_form)
}

fn is_unit(field: &[u8]) -> bool {
    let text = String::from_utf8_lossy(field).to_lowercase();
    let enclosed = |open: char, close: char| text.strip_prefix(open)?.strip_suffix(close);
    let inner = enclosed('(', ')').or_else(|| enclosed('[', ']')).unwrap_or(&text).trim();
    UNITS.contains(&inner) || OF_LOGGERS.contains(&inner)
}
