//! The share of a load that a worker does.

use coload::{
    Destination, Error, Hooks, Inputs, LoadReport, LoadRequest, Origin, Partitions, PlanRequest,
    Resources, Result,
};
use coload_input::SheetChoice;
use coload_load::{FoundInputs, SharedLoad, SplitRules, plan_splits, worker_of_name};
use coload_source::{PlaceOptions, expand_inputs_where, expand_inputs_with};

use crate::args::LoadArgs;

/// All of a load, or a share of it.
pub enum Whole {
    /// All of it.
    All(Box<LoadRequest>),
    /// The share of this number.
    Share(Box<SharedLoad>, u32),
}

impl Whole {
    /// What the flags ask for of a load that is planned.
    ///
    /// # Errors
    /// `Invalid` when the inputs cannot be shared.
    pub fn new(args: &LoadArgs, found: Option<FoundInputs>, request: LoadRequest) -> Result<Self> {
        let (Some(worker), Some(load), Some(found)) =
            (args.share.worker, args.share.load_id, found)
        else {
            return Ok(Whole::All(Box::new(request)));
        };
        let plan = match found.are_few() {
            true => plan_splits(&request, worker.count as usize, args.share.splits.rules())?,
            false => found.plan_hashed(),
        };
        let print = found.print(&plan.method);
        let shared = SharedLoad::new(request, plan, print, load)?;
        Ok(Whole::Share(Box::new(shared), worker.number))
    }

    /// The request of a dry run.
    ///
    /// # Errors
    /// Those of reading inputs.
    pub fn dry(self) -> Result<LoadRequest> {
        match self {
            Whole::All(request) => Ok(*request),
            Whole::Share(shared, number) => shared.request(number),
        }
    }

    /// Loads it.
    ///
    /// # Errors
    /// Those of the load.
    pub fn load(
        &self,
        resources: &Resources,
        hooks: &Hooks,
        into: &dyn Destination,
    ) -> Result<LoadReport> {
        match self {
            Whole::All(request) => coload::load(request, resources, hooks, into),
            Whole::Share(shared, number) => shared.load(*number, resources, hooks, into),
        }
    }
}

/// Looks for the inputs of a share, if one is asked for: of many, those of others are met and not kept.
///
/// # Errors
/// `Invalid` when an input is not there, or can be read by one worker only.
pub fn find_shared(args: &LoadArgs, request: &mut PlanRequest) -> Result<Option<FoundInputs>> {
    let Some(worker) = args.share.worker else { return Ok(None) };
    let Origin::Named(names) = &request.origin else {
        return Err(Error::Invalid(
            "--worker: rows of a database are read by one worker (leave it out)".to_owned(),
        ));
    };
    let (count, own) = (worker.count as usize, worker.number as usize - 1);
    let rules = args.share.splits.rules();
    let (inputs, found) =
        find_inputs(names, (&request.places, &request.sheets), count, (Some(own), rules))?;
    request.origin = Origin::Found(inputs);
    // A worker that knows some of the names cannot tell what all have.
    if !found.are_few() && request.partitions == Partitions::AreFound {
        request.partitions = Partitions::AreFolders;
    }
    Ok(Some(found))
}

/// Looks for inputs that workers share. If they are many, the list has those of one worker only, behind the one with the
/// least name, which all look at.
///
/// # Errors
/// As [`find_shared`].
pub fn find_inputs(
    names: &[String],
    (places, sheets): (&PlaceOptions, &SheetChoice),
    workers: usize,
    (own, rules): (Option<usize>, SplitRules),
) -> Result<(Inputs, FoundInputs)> {
    let mut found = FoundInputs::new(workers, own, rules)?;
    let mut inputs = expand_inputs_where(names, places, sheets, &mut |met| found.meet(&met))?;
    if let Some(once) = inputs.read_once() {
        return Err(Error::Invalid(format!(
            "{}: standard input and pipes are read by one worker; there is nothing to plan",
            once.name
        )));
    }
    if !found.are_few()
        && let Some(least) = found.least()
    {
        let first = expand_inputs_with(&[least.to_owned()], places, sheets, 0)?;
        let others = inputs.iter().filter(|input| input.name != least);
        let others = others.filter(|input| own == Some(worker_of_name(&input.name, workers)));
        inputs = first.iter().chain(others).collect();
    }
    Ok((inputs, found))
}

/// Refuses a share of a load into what publishes none.
///
/// # Errors
/// `Invalid` that says where shares go.
pub fn refuse_share(args: &LoadArgs) -> Result<()> {
    match args.share.worker {
        None => Ok(()),
        Some(_) => Err(Error::Invalid(
            "--worker: shares of a load go into a server (coload://...) or the directory of a store, which publish them \
             together"
                .to_owned(),
        )),
    }
}
