//! The file in which `coload tune` leaves what it measured, and loads find it.
//!
//! JSON: `{"coload_tuning": 1, "server": ..., "costs": {...}, "cells": [...]}`. The cells are for people; loads read the costs.

use coload_types::{Error, Result};
use serde_json::{Map, Value, json};

use super::{Cell, Costs, MethodCosts, Sharing};
use crate::options::Method;

/// Number of the form that is written, and read.
const FORM: u64 = 1;
/// Largest time that a file may say, an hour: one that says more is none of ours.
const TIME_MAX_US: f64 = 3.6e9;

/// What was measured of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// The engine and its version, as the server said it.
    pub server: String,
    /// What loads cost there.
    pub costs: Costs,
    /// What was measured.
    pub cells: Vec<Cell>,
}

impl Tuning {
    /// The text of its file.
    pub fn to_json(&self) -> String {
        let Costs { connect_us, round_trip_us, commit_us, methods } = &self.costs;
        let method = |costs: &MethodCosts| {
            json!({
                "method": costs.method.name(), "first_us": costs.first_us, "statement_us": costs.statement_us,
                "row_us": costs.row_us, "cell_us": costs.cell_us, "byte_us": costs.byte_us,
                "waits": costs.sharing.waits, "talk": costs.sharing.talk,
            })
        };
        let cell = |cell: &Cell| {
            json!({
                "method": cell.method.name(), "connections": cell.connections, "batch_rows": cell.batch_rows,
                "rows": cell.rows, "columns": cell.columns, "row_bytes": cell.row_bytes, "time_us": cell.time_us,
            })
        };
        let json = json!({
            "coload_tuning": FORM,
            "server": self.server,
            "costs": {
                "connect_us": connect_us, "round_trip_us": round_trip_us, "commit_us": commit_us,
                "methods": methods.iter().map(method).collect::<Vec<_>>(),
            },
            "cells": self.cells.iter().map(cell).collect::<Vec<_>>(),
        });
        format!("{json:#}\n")
    }

    /// Reads the text of such a file; `name` is for messages. Its cells are not read.
    ///
    /// # Errors
    /// `Invalid` when it is none, or says what no server does.
    pub fn of_json(text: &str, name: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::Invalid(format!(
                "{name}: no tuning of a server ({what}); `coload tune URL` writes one"
            ))
        };
        let json: Value = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        match json.get("coload_tuning").and_then(Value::as_u64) {
            Some(FORM) => {}
            Some(other) => return Err(wrong(&format!("coload_tuning is {other}, not {FORM}"))),
            None => return Err(wrong("it has no coload_tuning")),
        }
        let server = json.get("server").and_then(Value::as_str).unwrap_or_default().to_owned();
        let costs =
            json.get("costs").and_then(Value::as_object).ok_or_else(|| wrong("no costs"))?;
        let methods = costs.get("methods").and_then(Value::as_array);
        let methods = methods.ok_or_else(|| wrong("no methods"))?.iter().map(method_of);
        let costs = Costs {
            connect_us: number(costs, "connect_us").map_err(|w| wrong(&w))?,
            round_trip_us: number(costs, "round_trip_us").map_err(|w| wrong(&w))?,
            commit_us: number(costs, "commit_us").map_err(|w| wrong(&w))?,
            methods: methods.collect::<std::result::Result<_, _>>().map_err(|w| wrong(&w))?,
        };
        if costs.methods.is_empty() {
            return Err(wrong("no methods"));
        }
        Ok(Tuning { server, costs, cells: Vec::new() })
    }
}

fn method_of(json: &Value) -> std::result::Result<MethodCosts, String> {
    let map = json.as_object().ok_or("a method that is no object")?;
    let name = map.get("method").and_then(Value::as_str).unwrap_or_default();
    let method = Method::of_name(name).ok_or_else(|| format!("there is no method {name:?}"))?;
    Ok(MethodCosts {
        method,
        first_us: number(map, "first_us")?,
        statement_us: number(map, "statement_us")?,
        row_us: number(map, "row_us")?,
        cell_us: number(map, "cell_us")?,
        byte_us: number(map, "byte_us")?,
        sharing: Sharing { waits: number(map, "waits")?, talk: number(map, "talk")? },
    })
}

fn number(map: &Map<String, Value>, name: &str) -> std::result::Result<f64, String> {
    let found = map.get(name).and_then(Value::as_f64);
    match found.filter(|number| (0.0..=TIME_MAX_US).contains(number)) {
        Some(number) => Ok(number),
        None => Err(format!("{name} is {}", map.get(name).unwrap_or(&Value::Null))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_again_what_was_measured() {
        let method = MethodCosts {
            method: Method::Unnest,
            first_us: 1.5,
            statement_us: 2.0,
            row_us: 0.25,
            cell_us: 0.0,
            byte_us: 1e-4,
            sharing: Sharing { waits: 0.5, talk: 0.125 },
        };
        let costs = Costs {
            connect_us: 3000.0,
            round_trip_us: 41.0,
            commit_us: 900.0,
            methods: vec![method],
        };
        let tuning = Tuning { server: "PostgreSQL 15 \"x\"".into(), costs, cells: Vec::new() };
        assert_eq!(Tuning::of_json(&tuning.to_json(), "f").expect("a tuning"), tuning);
        let text = tuning.to_json();
        for (what, by) in [
            ("\"coload_tuning\": 1", "\"coload_tuning\": 2"),
            ("unnest", "nothing"),
            ("41.0", "-1.0"),
            ("41.0", "1e99"),
            ("41.0", "\"x\""),
            ("\"methods\"", "\"others\""),
        ] {
            let broken = text.replacen(what, by, 1);
            assert_ne!(broken, text, "{what}");
            let error = Tuning::of_json(&broken, "f").expect_err(what).to_string();
            assert!(error.contains("f: no tuning of a server"), "{error}");
        }
        assert!(Tuning::of_json("", "f").is_err());
        assert!(Tuning::of_json("[]", "f").is_err());
    }
}
