//! Requests: batches, calls of procedures, transactions, and rows of INSERT BULK.

use std::collections::HashMap;

use super::Shared;
use super::rows::{Given, insert_row, lock_for_writing};
use super::run::{BulkTarget, Run};
use super::store::Session;
use super::tokens::{Token, tokens, type_at};
use super::types::{SqlError, Type, Val, Value, error, take};
use super::wire::{Answer, Done, text};

/// Runs a batch; a table for which rows follow.
pub fn run_batch(
    shared: &Shared,
    session: &mut Session,
    sql: &str,
    answer: &mut Answer,
) -> Option<BulkTarget> {
    session.variables.clear();
    let bulk = run(shared, session, sql, HashMap::new(), Done::Batch, answer);
    answer.end();
    bulk
}

fn run(
    shared: &Shared,
    session: &mut Session,
    sql: &str,
    parameters: HashMap<String, Val>,
    done: Done,
    answer: &mut Answer,
) -> Option<BulkTarget> {
    let tokens = match tokens(sql) {
        Ok(tokens) => tokens,
        Err(failed) => {
            answer.error(failed.number, 15, &failed.text);
            answer.done(done, None);
            return None;
        }
    };
    let mut run = Run {
        shared,
        session,
        answer,
        tokens,
        at: 0,
        sql: sql.to_owned(),
        parameters,
        done,
        bulk: None,
    };
    while run.at < run.tokens.len() {
        if run.is_sign(";") {
            continue;
        }
        let mark = run.session.mark();
        if let Err(failed) = run.statement() {
            let mut db = run.shared.db.lock().unwrap();
            match failed.number {
                // A victim of a deadlock has no transaction any more, nor has one whose trigger failed.
                1205 | 50_000 => {
                    let old = run.session.transaction;
                    db.rollback(run.session, None);
                    if let Some(old) = old {
                        run.answer.change(10, &[], &old.to_le_bytes());
                    }
                }
                _ => db.rollback(run.session, Some(mark)),
            }
            run.answer.error(
                failed.number,
                if failed.number == 1205 { 13 } else { 16 },
                &failed.text,
            );
            if matches!(failed.number, 547 | 2601 | 2627 | 515 | 2628) {
                run.answer.info(3621, "The statement has been terminated.");
            }
            run.answer.done(done, None);
            break;
        }
        if run.session.transaction.is_none() {
            run.session.commit();
        }
    }
    run.bulk
}

/// Calls a procedure.
pub fn run_call(
    shared: &Shared,
    session: &mut Session,
    mut bytes: &[u8],
    answer: &mut Answer,
) -> Option<()> {
    session.variables.clear();
    let bytes = &mut bytes;
    let length = u16::from_le_bytes(take(bytes, 2)?.try_into().ok()?);
    let number = match length {
        0xffff => u16::from_le_bytes(take(bytes, 2)?.try_into().ok()?),
        units => match text(take(bytes, 2 * usize::from(units))?).to_lowercase().as_str() {
            "sp_executesql" => 10,
            "sp_prepare" => 11,
            "sp_execute" => 12,
            "sp_prepexec" => 13,
            "sp_unprepare" => 15,
            _ => 0,
        },
    };
    take(bytes, 2)?;
    let mut parameters = Vec::new();
    while !bytes.is_empty() {
        let units = usize::from(take(bytes, 1)?[0]);
        let name = text(take(bytes, 2 * units)?);
        take(bytes, 1)?;
        let of = Type::read(bytes)?;
        let value = of.read_value(bytes)?;
        parameters.push((name, of, value));
    }
    let value =
        |at: usize| parameters.get(at).map_or(Val::Null, |(_, of, value)| Val::of(value, of));
    let told = |at: usize| match value(at) {
        Val::Text(text) => text,
        _ => String::new(),
    };
    // Two parameters of a call are not the statement's.
    if parameters.len() > 2100 {
        answer.error(8003, 16, "The incoming request has too many parameters. The server supports a maximum of 2100 parameters.");
    } else {
        match number {
            10 => execute(
                shared,
                session,
                (&told(0), &told(1)),
                parameters.get(2..).unwrap_or_default(),
                answer,
            ),
            11 | 13 => {
                let handle = session.handles.len() as i32 + 1;
                let declared = declared(&told(1))?;
                session.handles.insert(handle, (told(2), declared));
                if number == 13 {
                    execute(
                        shared,
                        session,
                        (&told(2), &told(1)),
                        parameters.get(3..).unwrap_or_default(),
                        answer,
                    );
                }
                answer.status();
                answer.returned(handle);
                answer.done_with(Done::Procedure, 0, None);
                return Some(());
            }
            12 => {
                let handle = value(0).int().ok()?? as i32;
                match session.handles.get(&handle).cloned() {
                    Some((sql, declared)) => {
                        let names: Vec<String> = declared
                            .iter()
                            .map(|(name, of)| format!("@{name} {}", of.name))
                            .collect();
                        execute(
                            shared,
                            session,
                            (&sql, &names.join(",")),
                            &parameters[1..],
                            answer,
                        );
                    }
                    None => answer.error(
                        8179,
                        16,
                        &format!("Could not find prepared statement with handle {handle}."),
                    ),
                }
            }
            15 => drop(session.handles.remove(&(value(0).int().ok()?? as i32))),
            _ => answer.error(2812, 16, "Could not find stored procedure."),
        }
    }
    answer.status();
    answer.done(Done::Procedure, None);
    answer.end();
    Some(())
}

/// The names and types of declared parameters.
fn declared(text: &str) -> Option<Vec<(String, Type)>> {
    let tokens = tokens(text).ok()?;
    let mut at = 0;
    let mut out = Vec::new();
    while at < tokens.len() {
        let Token::Variable(name) = &tokens[at] else { return None };
        at += 1;
        let of = type_at(&tokens, &mut at).ok()?;
        out.push((name.clone(), of));
        while matches!(tokens.get(at), Some(Token::Word(_))) {
            at += 1;
        }
        if matches!(tokens.get(at), Some(Token::Sign(sign)) if sign == ",") {
            at += 1;
        }
    }
    Some(out)
}

fn execute(
    shared: &Shared,
    session: &mut Session,
    (sql, declaration): (&str, &str),
    given: &[(String, Type, Value)],
    answer: &mut Answer,
) {
    let Some(declared) = declared(declaration) else {
        return answer.error(102, 15, "Incorrect syntax in the declaration of parameters.");
    };
    if declared.len() != given.len() {
        return answer.error(
            8178,
            16,
            "The parameterized query expects parameters that were not supplied.",
        );
    }
    let mut parameters = HashMap::new();
    for ((name, _), (own, of, value)) in declared.iter().zip(given) {
        if !own.is_empty() && own.trim_start_matches('@').to_lowercase() != *name {
            return answer.error(8145, 16, "A parameter is not one of the statement.");
        }
        parameters.insert(name.clone(), Val::of(value, of));
    }
    run(shared, session, sql, parameters, Done::InProcedure, answer);
}

/// A request of the transaction manager.
pub fn run_transaction(
    shared: &Shared,
    session: &mut Session,
    bytes: &[u8],
    answer: &mut Answer,
) -> Option<()> {
    let sql = match u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) {
        5 => "BEGIN TRANSACTION",
        7 => "COMMIT",
        8 => "ROLLBACK",
        _ => return None,
    };
    run(shared, session, sql, HashMap::new(), Done::Batch, answer);
    // Those who say so begin the next one at once.
    if sql != "BEGIN TRANSACTION" && bytes.get(3).is_some_and(|flags| flags & 1 == 1) {
        run(shared, session, "BEGIN TRANSACTION", HashMap::new(), Done::Batch, answer);
    }
    answer.end();
    Some(())
}

/// Takes the rows of INSERT BULK.
pub fn run_bulk(
    shared: &Shared,
    session: &mut Session,
    target: &BulkTarget,
    bytes: &[u8],
    answer: &mut Answer,
) {
    let mark = session.mark();
    let trouble = shared.trouble.lock().unwrap().pop();
    let taken = match trouble {
        Some(number) => error(
            number,
            "Transaction was deadlocked on lock resources with another process and has been chosen as the deadlock victim. Rerun the transaction.",
        ),
        None => bulk_rows(shared, session, target, bytes, answer),
    };
    match taken {
        Ok(count) => answer.done_with(Done::Batch, 0, Some(count)),
        Err(failed) => {
            let mut db = shared.db.lock().unwrap();
            if matches!(failed.number, 1205 | 50_000) {
                let old = session.transaction;
                db.rollback(session, None);
                if let Some(old) = old {
                    answer.change(10, &[], &old.to_le_bytes());
                }
            } else {
                db.rollback(session, Some(mark));
            }
            answer.error(failed.number, if failed.number == 1205 { 13 } else { 16 }, &failed.text);
            answer.info(3621, "The statement has been terminated.");
            answer.done_with(Done::Batch, 2, None);
        }
    }
    if session.transaction.is_none() {
        session.commit();
    }
}

fn bulk_rows(
    shared: &Shared,
    session: &mut Session,
    target: &BulkTarget,
    bytes: &[u8],
    answer: &mut Answer,
) -> Result<u64, SqlError> {
    let wrong = |what: &str| error(4804, format!("The bulk data stream is incorrect: {what}."));
    let mut rest = bytes;
    let mut types = Vec::new();
    let count = match take(&mut rest, 3) {
        Some([0x81, low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
        _ => return wrong("no columns"),
    };
    if count != target.columns.len() {
        return wrong("another number of columns than was declared");
    }
    for (number, (name, declared)) in target.columns.iter().enumerate() {
        let read = (|| {
            let flags = take(&mut rest, 6)?[4];
            let of = Type::read(&mut rest)?;
            let units = usize::from(take(&mut rest, 1)?[0]);
            Some((flags, of, text(take(&mut rest, 2 * units)?)))
        })();
        let Some((flags, of, own)) = read else { return wrong("a column that ends early") };
        // A real server takes a column only if it is told of it what the table has.
        if (flags & 1 == 1) != shared.db.lock().unwrap().is_nullable(&target.key, name) {
            return error(
                4816,
                format!("Invalid column type from bcp client for colid {}.", number + 1),
            );
        }
        // Of times only the digits are told.
        let is_time = (0x29..=0x2b).contains(&of.kind);
        let is_same = of.kind == declared.kind && (is_time || of.size == declared.size);
        if own != *name
            || !is_same
            || of.scale != declared.scale
            || of.precision != declared.precision
        {
            return wrong(&format!("column {name} is {declared:?} and comes as {own} {of:?}"));
        }
        types.push(of);
    }
    let mut rows = 0;
    let mut db = lock_for_writing(shared, session, &target.key)?;
    loop {
        match take(&mut rest, 1) {
            Some([0xd1]) => {}
            Some([0xfd]) if rest.len() == 12 => return Ok(rows),
            // FreeTDS says nothing at the end.
            None => return Ok(rows),
            _ => return wrong("no row and no end"),
        }
        let mut cells = Vec::new();
        for ((name, _), of) in target.columns.iter().zip(&types) {
            let Some(value) = of.read_value(&mut rest) else {
                return error(
                    4815,
                    format!("Received an invalid column length from the bcp client for {name}."),
                );
            };
            cells.push((name.clone(), Given::Typed(value, of)));
        }
        rows += u64::from(insert_row(&mut db, session, &target.key, cells, answer)?);
    }
}
