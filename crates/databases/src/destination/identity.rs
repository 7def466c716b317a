//! What a resumable load is, so that it is known again.

use coload_input::InputSource;
use coload_load::{DatabaseReport, Load, LoadReport, SentBy, earlier_load};
use coload_store::LoadId;
use coload_threads::Started;
use coload_types::bytes::{Checksum, put_bytes};
use coload_types::{Error, Result};

use super::{Begun, Database};
use crate::names::TableName;

/// The id of a load: the same for the same inputs, table and way to make rows. What was inferred is not in it, for it is
/// the table's the second time; the checksums of chunks tell whether rows are the same.
///
/// # Errors
/// `Invalid` when an input can be read only once.
pub fn load_id(table: &TableName, load: Load<'_>) -> Result<LoadId> {
    let request = load.request;
    let mut parts = Vec::new();
    let mut put = |text: &str| put_bytes(&mut parts, text.as_bytes());
    put(&table.to_string());
    put(&format!("{:?} {} {}", request.mode, load.resources.chunk_bytes, load.resources.memory));
    if let Some(program) = &request.program {
        put(&format!("{:?}", program.sql()));
    }
    put(&format!("{:?} {:?}", request.fields, request.dialect.record_rules(0)));
    for input in request.inputs.iter() {
        match &input.source {
            InputSource::File { .. }
            | InputSource::Member { .. }
            | InputSource::Part { .. }
            | InputSource::Object(_) => {
                put(&input.name);
                put(&format!("{:?}", input.source));
            }
            _ => {
                return Err(Error::Invalid(format!(
                    "--resumable: {} can be read only once, so that a load that was killed cannot go on (load a file, or \
                     leave out --resumable)",
                    input.name
                )));
            }
        }
    }
    let sum = |salt: &[u8]| {
        let mut sum = Checksum::default();
        sum.add(salt);
        sum.add(&parts);
        u128::from(sum.value())
    };
    Ok(LoadId::from_u128(sum(b"coload") << 64 | sum(b"load")))
}

/// The report of a load that was done before.
pub fn earlier_report(
    database: &Database,
    begun: &Begun,
    rows: u64,
    started: &Started,
) -> LoadReport {
    let held = format!("its {rows} rows were committed before");
    let mut report = earlier_load(begun.id, database.table.to_string(), (rows, held), started);
    report.database = Some(DatabaseReport {
        server: begun.server.clone(),
        sent: SentBy { method: "none".to_owned(), connections: 0, batch_rows: 0, bytes: 0 },
        because: Vec::new(),
        estimates: Vec::new(),
        changes: Vec::new(),
        guarantee: "nothing was sent".to_owned(),
        committed_before: rows,
        refused: 0,
    });
    report
}
