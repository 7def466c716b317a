//! `coload plan`.

use std::fmt::Write;

use coload::{ConflictRule, Error, Inputs, Origin, PlanRequest, plan_with};
use coload_load::{Split, SplitMethod, SplitPart, SplitPlan, plan_splits};
use coload_store::OnConflict;
use serde_json::{Value, json};

use crate::args::{PlanArgs, ReportForm};
use crate::command::share::find_inputs;
use crate::given::{check_given, given_dialect};
use crate::output::{Done, Failure, print};
use crate::report::{Side, align};
use crate::size::{show_bytes, show_count};

/// Prints which worker would read what.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when the inputs cannot be planned.
pub fn run(args: &PlanArgs) -> Done {
    check_given(&args.dialect)?;
    let (places, sheets) = (args.places.options(), args.sheets.choice());
    let how = (None, args.splits.rules());
    let (inputs, found) = find_inputs(&args.inputs, (&places, &sheets), args.workers, how)?;
    let plan = match found.are_few() {
        true => explicit(args, &inputs)?,
        // So many are not opened.
        false => found.plan_hashed(),
    };
    print(&match args.output {
        ReportForm::Text => text(&plan, &inputs, found.count()),
        ReportForm::Json => json_text(&plan, &inputs, found.count()),
    })
}

fn explicit(args: &PlanArgs, inputs: &Inputs) -> Done<SplitPlan> {
    let mut request = PlanRequest::of(Origin::Found(inputs.clone()));
    request.dialect = given_dialect(&args.dialect);
    let Some(plan) = plan_with(&request, |_| Ok(None))? else {
        return Err(Failure::Failed(Error::Invalid(
            "nothing to plan: the inputs hold no record".to_owned(),
        )));
    };
    let mut request = plan.request;
    if args.on_conflict.as_ref().is_some_and(|rule| *rule != ConflictRule::Error) {
        // Whichever it is: who reads what is the same.
        request.on_conflict = OnConflict::Ignore;
    }
    Ok(plan_splits(&request, args.workers, args.splits.rules())?)
}

fn text(plan: &SplitPlan, inputs: &Inputs, count: usize) -> String {
    let mut out = String::new();
    for line in &plan.because {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{line}");
    }
    let unit = match plan.method {
        SplitMethod::Explicit(_) => "splits",
        SplitMethod::Hashed => "inputs",
    };
    let mut lines = vec![["worker", unit, "bytes"].map(str::to_owned).to_vec()];
    for (worker, share) in plan.shares.iter().enumerate() {
        let cells = [(worker + 1).to_string(), show_count(share.splits), show_bytes(share.bytes)];
        lines.push(cells.to_vec());
    }
    let _ =
        writeln!(out, "\n{}", align(&lines, &[Side::Left, Side::Right, Side::Right]).trim_end());
    let _ = writeln!(
        out,
        "\n{} inputs, {}; the worker with most has {:.1} % more than the mean",
        show_count(count as u64),
        show_bytes(plan.bytes()),
        plan.imbalance_percent()
    );
    if let SplitMethod::Explicit(splits) = &plan.method {
        let mut lines = vec![["worker", "input", "part", "bytes"].map(str::to_owned).to_vec()];
        for split in by_worker(splits) {
            let part = match &split.part {
                SplitPart::Whole => "all".to_owned(),
                SplitPart::Bytes(range) => format!("bytes {} to {}", range.start, range.end),
                SplitPart::RowGroups(range) => {
                    format!("row groups {} to {}", range.start + 1, range.end)
                }
                SplitPart::Batches(range) => {
                    format!("record batches {} to {}", range.start + 1, range.end)
                }
            };
            let name = inputs.name(split.input);
            lines.push(vec![(split.worker + 1).to_string(), name, part, show_bytes(split.bytes)]);
        }
        let sides = [Side::Left, Side::Left, Side::Left, Side::Right];
        let _ = write!(out, "\n{}", align(&lines, &sides));
    }
    out
}

fn by_worker(splits: &[Split]) -> Vec<&Split> {
    let mut splits: Vec<&Split> = splits.iter().collect();
    splits.sort_by_key(|split| split.worker);
    splits
}

fn json_text(plan: &SplitPlan, inputs: &Inputs, count: usize) -> String {
    let share = |(worker, share): (usize, &coload_load::WorkerShare)| json!({ "worker": worker + 1, "splits": share.splits, "bytes": share.bytes });
    let split = |split: &&Split| {
        let mut value = json!({
            "worker": split.worker + 1,
            "input": inputs.name(split.input),
            "bytes": split.bytes,
        });
        match &split.part {
            SplitPart::Whole => {}
            SplitPart::Bytes(range) => value["byte_range"] = json!([range.start, range.end]),
            SplitPart::RowGroups(range) => value["row_groups"] = json!([range.start, range.end]),
            SplitPart::Batches(range) => value["record_batches"] = json!([range.start, range.end]),
        }
        value
    };
    let (method, splits) = match &plan.method {
        SplitMethod::Explicit(splits) => {
            let splits: Vec<Value> = by_worker(splits).iter().map(split).collect();
            ("explicit", json!(splits))
        }
        SplitMethod::Hashed => ("hashed", Value::Null),
    };
    let workers: Vec<Value> = plan.shares.iter().enumerate().map(share).collect();
    let value = json!({
        "method": method,
        "because": plan.because,
        "inputs": count,
        "bytes": plan.bytes(),
        "imbalance_percent": plan.imbalance_percent(),
        "workers": workers,
        "splits": splits,
    });
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}
