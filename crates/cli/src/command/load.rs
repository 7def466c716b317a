//! `coload load`.

mod rejects;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use coload::{
    Coload, ConflictRule, DatabaseRows, Dialect, DictionaryPolicy, Error, Hooks, Joined, KeyKind,
    LoadMode, LoadPlan, LoadReport, LoadRequest, Mapping, OnWritten, Origin, Partitions,
    PlanRequest, ProgressCallback, ReadOptions, Reader, Resources, Result, SAMPLE_BYTES, Schema,
    SchemaOrigin, is_database_url, parse_columns, parse_create_table,
};
use coload_ddl::column_sql;
use coload_source::Inputs;
use coload_threads::{Started, leave_beside};

use crate::args::{Dictionaries, LoadArgs, ModeArgs, RejectsTo, ReportForm};
use crate::command::share::{Whole, find_shared, refuse_share};
use crate::command::{load_database, load_parquet, load_remote};
use crate::given::{check_given, given_dialect};
use crate::interrupt::cancel_on_signal;
use crate::output::{Done, Failure, print, say};
use crate::progress::ProgressBar;
use crate::remote_args::Identity;
use crate::report;
use rejects::Rejects;

/// A load that has ended: its report, and how the text was read, if it was text.
pub type Loaded = (LoadReport, Option<Dialect>);

/// A load that somebody calls for.
pub struct Call<'a> {
    /// What is asked for.
    pub args: &'a LoadArgs,
    /// Who asks a server.
    pub identity: Identity,
    /// Who is told.
    pub attendant: &'a dyn Attendant,
}

/// Who waits for a load.
pub trait Attendant {
    /// Is told what was found out, a line at a time.
    fn tell(&self, line: &str);

    /// What stops the load when it is set.
    fn cancel(&self) -> Arc<AtomicBool>;

    /// All is planned, and the load begins. Gives who is told how far it is.
    ///
    /// # Errors
    /// `Unavailable` when the system fails.
    fn begin(&self) -> Result<Option<ProgressCallback>>;

    /// Who is told when all rows are written, and are to be published.
    fn written(&self) -> Option<OnWritten> {
        None
    }

    /// The load has ended, well or not.
    fn end(&self);
}

/// A person at a terminal, or the log of another program: lines and a bar on standard error, and signals that stop the load.
struct Person {
    bar: ProgressBar,
    cancel: Arc<AtomicBool>,
}

impl Attendant for Person {
    fn tell(&self, line: &str) {
        say(line);
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    fn begin(&self) -> Result<Option<ProgressCallback>> {
        let progress = self.bar.callback();
        cancel_on_signal(self.cancel())?;
        Ok(progress)
    }

    fn written(&self) -> Option<OnWritten> {
        // The process ends with the load.
        Some(Arc::new(leave_beside))
    }

    fn end(&self) {
        self.bar.clear();
    }
}

/// Share of the memory of a load for the texts of small files.
const TEXTS_SHARE: usize = 64;

/// Loads into a destination: the call, what follows the prefix of `--into`, and what is asked for. `None` when there is
/// nothing to load.
type LoadInto = fn(&Call<'_>, &OsStr, PlanRequest) -> Done<Option<Loaded>>;

/// Destinations that `--into` tells by how it begins. Anything else is the directory of a store.
const DESTINATIONS: [(&str, LoadInto); 9] = [
    ("coload://", load_remote::load_into),
    ("coloads://", load_remote::load_into),
    ("parquet:", load_parquet::load_into),
    ("postgres://", load_database::load_into),
    ("postgresql://", load_database::load_into),
    ("mysql://", load_database::load_into),
    ("mariadb://", load_database::load_into),
    ("sqlserver://", load_database::load_into),
    ("mssql://", load_database::load_into),
];

/// Loads, and prints the report.
///
/// # Errors
/// `Usage` when flags contradict each other, `Failed` when nothing was loaded.
pub fn run(args: &LoadArgs) -> Done {
    let person = Person { bar: ProgressBar::on_terminal(), cancel: Arc::default() };
    let call = Call { args, identity: Identity::of_environment(), attendant: &person };
    match load(&call, None)? {
        Some(loaded) => tell(args, &loaded),
        None => tell_nothing(args),
    }
}

/// Loads what the flags name, or what the caller brings.
///
/// # Errors
/// As [`run`].
pub fn load(call: &Call<'_>, brought: Option<coload::Rows>) -> Done<Option<Loaded>> {
    // To find inputs takes time, too: of many objects more than to load them.
    let started = Started::now();
    let args = call.args;
    check_given(&args.dialect)?;
    let origin = match brought {
        Some(rows) => Origin::Rows(rows),
        None => origin_of(args)?,
    };
    let request = request(args, origin)?;
    let into = args.into.as_os_str();
    let known = DESTINATIONS
        .iter()
        .find_map(|(prefix, load)| Some((into.as_bytes().strip_prefix(prefix.as_bytes())?, *load)));
    let (rest, load) = match known {
        Some((rest, load)) => (OsStr::from_bytes(rest), load),
        None if args.dry_run => (into, dry_run as LoadInto),
        None => (into, load_into as LoadInto),
    };
    let publishes = known.is_none() || into.as_bytes().starts_with(b"coload");
    if !publishes {
        refuse_share(args).map_err(Failure::Usage)?;
    }
    let mut loaded = load(call, rest, request)?;
    if let Some((report, _)) = &mut loaded {
        report.set_costs(&started);
    }
    Ok(loaded)
}

/// Prints the report.
///
/// # Errors
/// `Failed` when a dry run says that the load would fail.
fn tell(args: &LoadArgs, (report, dialect): &Loaded) -> Done {
    if let (Some(earlier), Some(shares)) = (&report.earlier, &report.shares) {
        say(&format!("nothing was loaded: of load {}, {}", shares.of.load, earlier.held));
    } else if let (Some(earlier), Some(id)) = (&report.earlier, report.id) {
        let held = if earlier.held.is_empty() { "it is published already" } else { &earlier.held };
        say(&format!(
            "nothing was loaded: this is load {id}, and {held}{}",
            match (&report.network, &report.database) {
                (None, None) => "",
                _ => " (--again loads it once more)",
            }
        ));
    }
    match (args.report, &report.placement) {
        (ReportForm::Json, _) => print(&report::json(report, dialect.as_ref())),
        (ReportForm::Text, Some(placement)) if args.remote.explain => {
            print(&(report::explanation(placement) + "\n" + &report::text(report)))
        }
        (ReportForm::Text, None) if args.remote.explain => {
            print(&(report::database_explanation(report) + &report::text(report)))
        }
        (ReportForm::Text, _) => print(&report::text(report)),
    }?;
    let (rows, rejects) = (report.rows(), report.reject_count());
    match report.dry_run.is_some() && args.max_rejects.is_over(rejects, rows + rejects) {
        false => Ok(()),
        true => Err(Failure::Failed(Error::Invalid(format!(
            "the load would fail: {rejects} records would be rejected (--max-rejects allows more)"
        )))),
    }
}

/// Says that the inputs hold nothing that could be loaded.
fn tell_nothing(args: &LoadArgs) -> Done {
    say(&format!(
        "nothing to load, and nothing made: {} holds no record that tells the columns; give --columns or --schema \
         to load it all the same",
        args.inputs.join(", ")
    ));
    print(match args.report {
        ReportForm::Text => "",
        ReportForm::Json => report::JSON_OF_NOTHING,
    })
}

/// Finds out what a load into the store of a directory would do.
fn dry_run(call: &Call<'_>, into: &OsStr, mut request: PlanRequest) -> Done<Option<Loaded>> {
    let found = find_shared(call.args, &mut request)?;
    let Some(mut plan) = Coload::plan_dry_run(into, &request)? else { return Ok(None) };
    let table = format!("table {}", plan.request.table);
    if let Some(key) = plan.request.schema.key() {
        let key = key.sql(plan.request.schema.columns());
        call.attendant.tell(&format!(
            "{table}: --dry-run does not look whether keys of {key} come twice or are there already"
        ));
    }
    let prepared = prepare(call, &mut plan, &table)?;
    let mut request = Whole::new(call.args, found, plan.request)?.dry()?;
    let beside = std::mem::take(&mut request.beside);
    let run = prepared.run(|resources, hooks| {
        let run = |request| Coload::dry_run(into, request, resources, hooks);
        let beside = beside.iter().map(run).collect::<Result<_>>()?;
        Ok(LoadReport { beside, ..run(&request)? })
    })?;
    Ok(Some((run, request.dialect_of_text().cloned())))
}

/// Loads into the store of a directory.
fn load_into(call: &Call<'_>, into: &OsStr, mut request: PlanRequest) -> Done<Option<Loaded>> {
    // Looked at first, so that a name that is wrong makes no store.
    let found = find_shared(call.args, &mut request)?;
    find_inputs(&mut request)?;
    let store = Coload::create_or_open(into)?;
    let Some(mut plan) = store.plan_unless_empty(&request)? else { return Ok(None) };
    let table = plan.request.table.clone();
    let prepared = prepare(call, &mut plan, &format!("table {table}"))?;
    let mut request = plan.request;
    if let (Some(RejectsTo::Table(_)), Some(beside)) = (&call.args.rejects, request.beside.first())
    {
        return Err(Failure::Usage(Error::Invalid(format!(
            "--rejects table: takes the rejects of one table, and table {} is loaded beside: give a file, from whose name that of each \
             table is made",
            beside.table
        ))));
    }
    let rejects = Rejects::prepare(call.args.rejects.as_ref(), store.store(), &table)?;
    request.rejects_file = rejects.file.clone();
    request.rejects_table = rejects.table.map(str::to_owned);
    request.resumable = call.args.database.resumable;
    let protected = (store.store().path().to_owned(), "the store");
    request.beside.iter_mut().for_each(|beside| beside.protected.push(protected.clone()));
    request.protected.push(protected);
    let dialect = request.dialect_of_text().cloned();
    let whole = Whole::new(call.args, found, request)?;
    let report = prepared.run(|resources, hooks| whole.load(resources, hooks, store.store()))?;
    drop(rejects);
    Ok(Some((report, dialect)))
}

/// What a load may use, and who is told of it.
pub struct Prepared<'a> {
    /// As flags say.
    pub resources: Resources,
    /// Those of who waits for the load.
    pub hooks: Hooks,
    attendant: &'a dyn Attendant,
}

impl Prepared<'_> {
    /// Runs a load, and says when it has ended.
    ///
    /// # Errors
    /// Those of the load.
    pub fn run(
        self,
        load: impl FnOnce(&Resources, &Hooks) -> Result<LoadReport>,
    ) -> Result<LoadReport> {
        let loaded = load(&self.resources, &self.hooks);
        self.attendant.end();
        loaded
    }
}

/// Tells what was found out for what is loaded, and sets what flags say.
///
/// # Errors
/// `Failed` when signals cannot be waited for.
pub fn prepare<'a>(call: &Call<'a>, plan: &mut LoadPlan, what: &str) -> Done<Prepared<'a>> {
    let Call { args, attendant, .. } = *call;
    tell_inferred(attendant, plan, what);
    set_request(&mut plan.request, args);
    let progress = attendant.begin()?;
    let hooks = Hooks {
        progress,
        written: attendant.written(),
        cancel: attendant.cancel(),
        ..Hooks::default()
    };
    Ok(Prepared { resources: resources(args), hooks, attendant })
}

fn request(args: &LoadArgs, origin: Origin) -> Done<PlanRequest> {
    Ok(PlanRequest {
        origin,
        places: args.places.options(),
        sheets: args.sheets.choice(),
        table: args.table.clone(),
        schema: schema(args)?,
        key: key(args),
        dialect: given_dialect(&args.dialect),
        mapping: mapping(args)?,
        reader: Reader::Load,
        beside: args.dialect.mapping.iter().flat_map(|mapping| mapping.tables.clone()).collect(),
        joined: if args.union_by_name { Joined::ByName } else { Joined::ByPosition },
        set: args.set.clone(),
        partitions: match (args.partitions, args.no_partitions) {
            (true, _) => Partitions::AreColumns,
            (false, true) => Partitions::AreFolders,
            (false, false) => Partitions::AreFound,
        },
        filter: args.filter.clone(),
        select: args.select.clone(),
        mode: mode(&args.mode),
        on_conflict: args.on_conflict.clone().unwrap_or(match &args.delete_where {
            Some(_) => ConflictRule::Replace,
            None => ConflictRule::Error,
        }),
        delete_where: args.delete_where.clone(),
        sample_bytes: args.sample.unwrap_or(SAMPLE_BYTES),
        text_room: resources(args).memory / TEXTS_SHARE,
    })
}

/// What the flags name: inputs, or rows of a table or a query of a database.
fn origin_of(args: &LoadArgs) -> Done<Origin> {
    let refuse = |text: &str| Err(Failure::Usage(Error::Invalid(text.to_owned())));
    let query = args.database.query.clone();
    match (args.inputs.as_slice(), &query) {
        ([url], _) if is_database_url(url) => {
            let options = ReadOptions { query, connections: args.remote.connections };
            let rows = DatabaseRows::open(url, &options)?;
            rows.notes().iter().for_each(|note| say(&format!("{}: {note}", rows.input.name)));
            Ok(Origin::Rows(rows.into()))
        }
        (inputs, _) if inputs.iter().any(|input| is_database_url(input)) => {
            refuse("rows of a database are loaded alone: give one URL, and no other input")
        }
        (_, Some(_)) => refuse(
            "--query: give the URL of a database as the input, as in postgres://host/database",
        ),
        (inputs, None) => Ok(Origin::Named(inputs.to_vec())),
    }
}

/// Looks for the inputs, if nobody has.
///
/// # Errors
/// `Failed` when one is not there.
pub fn find_inputs(request: &mut PlanRequest) -> Done {
    let origin = std::mem::replace(&mut request.origin, Origin::Found(Inputs::default()));
    request.origin = origin.found(&request.places, &request.sheets, request.text_room)?;
    Ok(())
}

fn key(args: &LoadArgs) -> Option<(KeyKind, Vec<String>)> {
    let given = [(KeyKind::Primary, &args.primary_key), (KeyKind::Cluster, &args.cluster_by)];
    let (kind, names) = given.into_iter().find(|(_, names)| !names.is_empty())?;
    Some((kind, names.iter().map(|name| name.trim().to_owned()).collect()))
}

fn mapping(args: &LoadArgs) -> Done<Option<Mapping>> {
    let mut mapping = Mapping::default();
    for pair in &args.map {
        mapping.add(pair).map_err(Failure::Usage)?;
    }
    Ok((args.by_name || !args.map.is_empty()).then_some(mapping))
}

fn schema(args: &LoadArgs) -> Done<Option<Schema>> {
    if let Some(list) = &args.columns {
        let schema = parse_columns(list).map_err(|e| flag_error("--columns", &e))?;
        return Ok(Some(schema));
    }
    let Some(path) = &args.schema else { return Ok(None) };
    let sql = std::fs::read_to_string(path).map_err(|e| Error::io("read --schema", path, &e))?;
    let flag = format!("--schema {}", path.display());
    let (_, schema) = parse_create_table(&sql).map_err(|e| flag_error(&flag, &e))?;
    Ok(Some(schema))
}

fn flag_error(flag: &str, error: &Error) -> Failure {
    Failure::Usage(Error::Invalid(format!("{flag}: {error}")))
}

fn mode(args: &ModeArgs) -> LoadMode {
    match args {
        ModeArgs { replace: true, .. } => LoadMode::Replace,
        ModeArgs { create: true, .. } => LoadMode::Create,
        _ => LoadMode::Append,
    }
}

/// Sets what flags say of what is loaded besides the rows. Rejects of a table beside the first go to a file of their own.
fn set_request(request: &mut LoadRequest, args: &LoadArgs) {
    for beside in &mut request.beside {
        set_request(beside, args);
        if let Some(file) = &mut beside.rejects_file {
            // A name of a table may have what parts folders.
            file.as_mut_os_string().push(format!(".{}", beside.table.replace('/', "_")));
        }
    }
    request.max_rejects = args.max_rejects;
    if let Some(RejectsTo::File(path)) = &args.rejects {
        request.rejects_file = Some(path.clone());
    }
    request.protected.extend(args.schema.clone().map(|path| (path, "the file of --schema")));
    request.count_distinct = args.count_distinct || args.dry_run;
    if args.dry_run {
        let all = |bytes: &usize| *bytes == usize::MAX;
        request.sample_bytes = args.sample.filter(|bytes| !all(bytes)).map(|bytes| bytes as u64);
    }
}

/// What flags say that a load may use.
fn resources(args: &LoadArgs) -> Resources {
    let given = &args.pipeline;
    let usual = Resources::default();
    Resources {
        threads: given.threads.unwrap_or(usual.threads),
        memory: given.memory.unwrap_or(usual.memory),
        chunk_bytes: given.chunk_size.unwrap_or(usual.chunk_bytes),
        fragments_per_partition: given
            .fragments_per_partition
            .unwrap_or(usual.fragments_per_partition),
        merge_columns: given.merge_columns.unwrap_or(usual.merge_columns),
        dictionaries: match given.dictionaries {
            Dictionaries::Auto => DictionaryPolicy::Auto,
            Dictionaries::Always => DictionaryPolicy::Always,
        },
        sort_space: given.sort_space.clone(),
        run_space: given.run_space.clone(),
    }
}

/// Says what was guessed for a table or other `what`, and how to say otherwise.
fn tell_inferred(attendant: &dyn Attendant, plan: &LoadPlan, what: &str) {
    let say = |line: &str| attendant.tell(line);
    let name = plan.request.inputs.first().map_or_else(|| "-".to_owned(), |first| first.name);
    for line in &plan.evidence {
        say(&format!("{name}: {line}"));
    }
    match plan.schema_from {
        SchemaOrigin::Given => {}
        SchemaOrigin::Table if plan.request.mode == LoadMode::Replace => {
            say(&format!("{name}: no record tells other columns, so that {what} keeps its own"))
        }
        SchemaOrigin::Table => say(&format!(
            "{name}: columns are those of {what}, and keep their types (--replace makes it anew)"
        )),
        SchemaOrigin::Inferred => {
            let list: Vec<String> = plan.request.schema.columns().iter().map(column_sql).collect();
            say(&format!("{name}: columns inferred for {what}; to say otherwise:"));
            say(&format!("  --columns '{}'", list.join(", ")));
        }
    }
}
