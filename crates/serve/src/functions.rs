//! The functions that statements can call: a list by name of those of the query engine. What a new version of it adds is
//! not there until it is listed, which a test asks for.

mod boundaries;
mod digest;
mod extract;
pub(crate) mod listing;
pub(crate) mod ordinals;
mod own;
mod type_name;
mod uuid_text;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::catalog::TableFunction;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

pub(crate) use self::uuid_text::uuid_text;
use crate::formats::with_checked_formats;
use crate::statement::tree::spoken_names;

/// What a function is called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One row.
    Scalar,
    /// Rows of a group or of a window.
    Rows,
}

/// Functions of a row.
const SCALAR: &str = "abs acos acosh ascii asin asinh atan atan2 atanh bit_length btrim cbrt ceil character_length chr \
    coalesce concat concat_ws contains cos cosh cot current_date current_time date_bin date_part date_trunc decode degrees \
    encode ends_with exp factorial find_in_set floor from_unixtime gcd greatest initcap isnan iszero lcm least left levenshtein \
    ln log log10 log2 lower lpad ltrim make_date make_time nanvl now nullif nvl nvl2 octet_length overlay pi power \
    radians random regexp_count regexp_instr regexp_like regexp_replace repeat replace reverse right round rpad rtrim \
    signum sin sinh split_part sqrt starts_with strpos substr substr_index tan tanh to_char to_date to_hex \
    to_local_time to_time to_timestamp to_timestamp_micros to_timestamp_millis to_timestamp_nanos \
    to_timestamp_seconds to_unixtime translate trunc upper uuid";

/// Functions of lists of a row: what they answer is hardly longer than what they are given, and they look at each element once.
const LISTS: &str = "array_any_value array_append array_compact array_distance array_distinct array_element array_has array_length \
    array_max array_min array_pop_back array_pop_front array_position array_positions array_prepend array_remove \
    array_remove_all array_reverse array_slice array_sort cardinality cosine_distance empty inner_product make_array";

/// Functions of a group of rows.
const AGGREGATE: &str = "any_value approx_distinct approx_median approx_percentile_cont \
    approx_percentile_cont_with_weight array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop \
    covar_samp first_value grouping last_value max median min nth_value percentile_cont regr_avgx regr_avgy regr_count \
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop string_agg sum var var_pop";

/// Functions of a window.
const WINDOW: &str = "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number";

/// Functions that are tables.
pub(crate) const TABLE_FUNCTIONS: [&str; 2] = ["generate_series", "range"];

/// Functions of the engine that no statement can call, and why.
#[cfg(test)]
const REFUSED: [(&str, &str); 9] = [
    (
        "arrow_cast arrow_field arrow_metadata arrow_try_cast arrow_typeof with_metadata",
        "types of the engine",
    ),
    (
        "cast_to_type try_cast_to_type get_field named_struct struct union_extract union_tag",
        "types that no column has",
    ),
    ("input_file_name file_row_index version", "they tell of the server; version() is ours"),
    ("regexp_match", "regexp_replace and regexp_like do what it is for"),
    (
        "array_concat array_repeat array_replace array_replace_all array_replace_n array_resize array_to_string \
            generate_series range string_to_array",
        "a few bytes become as many as somebody likes",
    ),
    (
        "array_except array_has_all array_has_any array_intersect array_remove_n array_union",
        "they compare each element of one with each of the other, or nearly do",
    ),
    (
        "array_add array_avg array_normalize array_product array_scale array_subtract array_sum",
        "they compute with DOUBLE, whatever the elements are",
    ),
    ("array_dims array_ndims arrays_zip flatten", "lists of lists and of structs"),
    ("map map_entries map_extract map_keys map_values", "there are no maps"),
];

fn is_in(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|listed| listed == name)
}

/// All functions of the lists.
struct Listed {
    scalar: Vec<Arc<ScalarUDF>>,
    aggregate: Vec<Arc<AggregateUDF>>,
    window: Vec<Arc<WindowUDF>>,
    /// The kind by name, aliases too.
    kinds: HashMap<String, Kind>,
}

static LISTED: LazyLock<Listed> = LazyLock::new(|| {
    type Defaults = SessionStateDefaults;
    let scalar = Defaults::default_scalar_functions().into_iter();
    let scalar: Vec<_> = scalar
        .filter(|f| is_in(SCALAR, f.name()) || is_in(LISTS, f.name()))
        .map(with_checked_formats)
        .collect();
    let scalar = [scalar, own::own_functions()].concat();
    let aggregate = Defaults::default_aggregate_functions().into_iter();
    let aggregate: Vec<_> = aggregate.filter(|f| is_in(AGGREGATE, f.name())).collect();
    let window = Defaults::default_window_functions().into_iter();
    let window: Vec<_> = window.filter(|f| is_in(WINDOW, f.name())).collect();
    let mut kinds = HashMap::new();
    for f in &scalar {
        let names = std::iter::once(f.name()).chain(f.aliases().iter().map(String::as_str));
        kinds.extend(names.map(|name| (name.to_owned(), Kind::Scalar)));
    }
    for f in &aggregate {
        let names = std::iter::once(f.name()).chain(f.aliases().iter().map(String::as_str));
        kinds.extend(names.map(|name| (name.to_owned(), Kind::Rows)));
    }
    for f in &window {
        let names = std::iter::once(f.name()).chain(f.aliases().iter().map(String::as_str));
        kinds.extend(names.map(|name| (name.to_owned(), Kind::Rows)));
    }
    Listed { scalar, aggregate, window, kinds }
});

/// What the functions of a group take that take values of some types only.
const TAKEN: [(&str, &str); 4] = [
    (
        "approx_median approx_percentile_cont approx_percentile_cont_with_weight avg corr covar_pop covar_samp median \
            percentile_cont regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev \
            stddev_pop sum var var_pop",
        "numbers",
    ),
    ("bit_and bit_or bit_xor", "integers"),
    ("bool_and bool_or", "BOOLEAN"),
    ("string_agg", "a text and what stands between two"),
];

/// What a function takes, for who gave it something else, if that is known.
pub(crate) fn taken_by(name: &str) -> Option<&'static str> {
    TAKEN.iter().find(|(names, _)| is_in(names, name)).map(|(_, taken)| *taken)
}

/// Whether a function is one of lists.
pub(crate) fn takes_lists(name: &str) -> bool {
    is_in(LISTS, name) || name == ordinals::ORDINALS
}

/// The kind of a function by its name in lower case; `None` when there is none of that name.
pub(crate) fn kind_of(name: &str) -> Option<Kind> {
    LISTED.kinds.get(name).copied()
}

/// Names of all functions that statements can call, in no order.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    LISTED.kinds.keys().map(String::as_str).chain(TABLE_FUNCTIONS).chain(spoken_names())
}

/// The functions that are tables, by name.
pub(crate) fn table_functions() -> HashMap<String, Arc<TableFunction>> {
    let tables = SessionStateDefaults::default_table_functions().into_iter();
    tables
        .filter(|f| TABLE_FUNCTIONS.contains(&f.name()))
        .map(|f| (f.name().to_owned(), f))
        .collect()
}

/// A session with the listed functions, and nothing that reads or writes files.
pub(crate) fn session_builder() -> SessionStateBuilder {
    SessionStateBuilder::new()
        .with_expr_planners(SessionStateDefaults::default_expr_planners())
        .with_scalar_functions(LISTED.scalar.clone())
        .with_aggregate_functions(LISTED.aggregate.clone())
        .with_window_functions(LISTED.window.clone())
        .with_table_functions(table_functions())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function that a new version of the engine brings is either listed or refused, never simply there.
    #[test]
    fn every_function_of_the_engine_is_listed_or_refused() {
        type Defaults = SessionStateDefaults;
        let scalar = Defaults::default_scalar_functions();
        let aggregate = Defaults::default_aggregate_functions();
        let window = Defaults::default_window_functions();
        let tables = Defaults::default_table_functions();
        let refused = |name: &str| REFUSED.iter().any(|(names, _)| is_in(names, name));
        let mut new: Vec<String> = Vec::new();
        for (kind, list, names) in [
            (
                "scalar",
                &*format!("{SCALAR} {LISTS}"),
                scalar.iter().map(|f| f.name()).collect::<Vec<_>>(),
            ),
            ("aggregate", AGGREGATE, aggregate.iter().map(|f| f.name()).collect()),
            ("window", WINDOW, window.iter().map(|f| f.name()).collect()),
        ] {
            let unknown = names.iter().filter(|name| !is_in(list, name) && !refused(name));
            new.extend(unknown.map(|name| format!("{kind} {name} is new")));
            let gone = list.split_whitespace().filter(|name| !names.contains(name));
            new.extend(gone.map(|name| format!("{kind} {name} is gone")));
        }
        let unknown = tables.iter().map(|f| f.name()).filter(|f| !TABLE_FUNCTIONS.contains(f));
        new.extend(unknown.map(|name| format!("table {name} is new")));
        assert!(new.is_empty(), "{new:#?}");
    }
}
