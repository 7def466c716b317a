//! The share of a load that a worker does.

use coload::{Destination, Error, Hooks, LoadReport, LoadRequest, Resources, Result};
use coload_load::{SharedLoad, plan_hashed, plan_splits, print_plan};

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
    pub fn new(args: &LoadArgs, request: LoadRequest) -> Result<Self> {
        let (Some(worker), Some(load)) = (args.share.worker, args.share.load_id) else {
            return Ok(Whole::All(Box::new(request)));
        };
        let (workers, rules) = (worker.count as usize, args.share.splits.rules());
        let plan = match request.inputs.len() > rules.explicit_max {
            true => plan_hashed(&request.inputs, workers, rules)?,
            false => plan_splits(&request, workers, rules)?,
        };
        let print = print_plan(&request.inputs, &plan);
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
