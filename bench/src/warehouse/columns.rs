//! The 155 columns of the warehouse table.
//!
//! The table is a sales fact table as extracted from an ERP system into a data warehouse: one row per item of a
//! document, the document's header fields and the texts of the codes joined on. 140 columns have few to some
//! thousand distinct values, 15 have many.

use super::words::{COUNTRIES, CURRENCIES, INCOTERMS, LANGUAGES, NAMES, REGIONS, STATUSES, UNITS};

/// One column: its SQL and how its values come about.
pub struct Column {
    pub name: &'static str,
    /// Type and constraint, as in CREATE TABLE.
    pub sql: &'static str,
    /// How often the field is empty, in a thousand.
    pub empty_permille: u32,
    pub source: Source,
    pub values: Values,
}

/// What a new value of a column depends on.
#[derive(Clone, Copy)]
pub enum Source {
    /// Drawn once per document.
    Document,
    /// Drawn once per item, that is per row.
    Item,
    /// The place of the item in its document.
    Position,
    /// A function of the named earlier column: a material belongs to one material group.
    Of(&'static str),
}

/// The values of a column, most frequent first.
pub enum Values {
    /// A list of texts.
    List(&'static [&'static str], Skew),
    /// `count` texts of a form: `A` stands for a letter, `9` for a digit, the rest for itself.
    Code { form: &'static str, count: u32, skew: Skew },
    /// `count` descriptions of two or three words.
    Text { count: u32, skew: Skew },
    /// `count` numbers, `step` apart from `low` on, with `scale` decimal places.
    Number { low: i64, step: i64, count: u32, scale: u32, skew: Skew },
    /// The description of each value of the column in `Of`.
    TextOfCode,
    /// A day `low..low + count` days after the day of the document (`Document`, `Item`) or 2005-01-01 (`Of`).
    Date { low: i32, count: u32, skew: Skew },
    /// A part of the date column in `Of`.
    PartOfDate(DatePart),
    /// One of the fifteen columns with many values.
    Many(Many),
}

/// A part of a date.
#[derive(Clone, Copy)]
pub enum DatePart {
    Year,
    Month,
    /// 1..=53, the first seven days of the year being week 1
    Week,
}

/// Items of the longest document.
pub const ITEMS_MAX: u32 = 40;

/// Exponent of the frequencies' fall with the rank.
pub type Skew = f64;

/// A column of many values.
#[derive(Clone, Copy)]
pub enum Many {
    RowId,
    DocumentNumber,
    DocumentUuid,
    ItemUuid,
    CustomerNumber,
    CustomerName,
    MaterialNumber,
    Quantity,
    NetAmount,
    TaxAmount,
    CostAmount,
    Comment,
    CreatedAt,
    ContactEmail,
    ExternalReference,
}

const fn column(name: &'static str, sql: &'static str, source: Source, values: Values) -> Column {
    Column { name, sql, empty_permille: 0, source, values }
}

const fn sparse(
    empty_permille: u32,
    name: &'static str,
    sql: &'static str,
    source: Source,
    values: Values,
) -> Column {
    Column { name, sql, empty_permille, source, values }
}

const fn many(name: &'static str, sql: &'static str, source: Source, which: Many) -> Column {
    Column { name, sql, empty_permille: 0, source, values: Values::Many(which) }
}

const fn code(form: &'static str, count: u32, skew: Skew) -> Values {
    Values::Code { form, count, skew }
}

const fn text(count: u32, skew: Skew) -> Values {
    Values::Text { count, skew }
}

const fn integer(low: i64, step: i64, count: u32, skew: Skew) -> Values {
    Values::Number { low, step, count, scale: 0, skew }
}

const fn decimal(scale: u32, low: i64, step: i64, count: u32, skew: Skew) -> Values {
    Values::Number { low, step, count, scale, skew }
}

const fn date(low: i32, count: u32, skew: Skew) -> Values {
    Values::Date { low, count, skew }
}

/// SAP's flag: set or empty.
const FLAG: Values = List(&["X"], 0.0);
const YES_NO: Values = List(&["N", "Y"], 3.0);

use Source::{Document, Item, Of};
use Values::{List, PartOfDate, TextOfCode};

/// All columns, in the order of the file.
// One line a column, so that it reads as a table.
#[rustfmt::skip]
pub const COLUMNS: &[Column] = &[
    // Keys and origin
    many("row_id", "BIGINT NOT NULL", Item, Many::RowId),
    column("client", "CHAR(3) NOT NULL", Document, List(&["100"], 0.0)),
    column("source_system", "VARCHAR(10) NOT NULL", Document, List(&["P01CLNT100", "P02CLNT100", "LEGACY"], 2.5)),
    many("document_no", "VARCHAR(10) NOT NULL", Document, Many::DocumentNumber),
    column("item_no", "INTEGER NOT NULL", Source::Position, integer(10, 10, ITEMS_MAX, 0.0)),
    many("document_uuid", "UUID NOT NULL", Document, Many::DocumentUuid),
    many("item_uuid", "UUID NOT NULL", Item, Many::ItemUuid),
    column("extraction_package", "INTEGER NOT NULL", Document, integer(1, 1, 48, 0.2)),
    column("record_mode", "VARCHAR(1) NOT NULL", Item, List(&["N", "A", "R", "D"], 3.0)),
    column("document_category", "CHAR(1) NOT NULL", Document, List(&["C", "H", "G", "K", "L", "I", "E"], 2.0)),
    column("document_type", "CHAR(4) NOT NULL", Document, code("ZA9A", 38, 1.4)),
    column("document_type_text", "VARCHAR(40) NOT NULL", Of("document_type"), TextOfCode),
    column("item_category", "CHAR(4) NOT NULL", Item, code("AA9A", 46, 1.5)),
    column("item_category_text", "VARCHAR(40) NOT NULL", Of("item_category"), TextOfCode),
    // Organisation
    column("company_code", "CHAR(4) NOT NULL", Document, code("9999", 32, 1.0)),
    column("company_name", "VARCHAR(40) NOT NULL", Of("company_code"), TextOfCode),
    column("company_country", "CHAR(2) NOT NULL", Of("company_code"), List(COUNTRIES, 0.9)),
    column("company_currency", "CHAR(3) NOT NULL", Of("company_code"), List(CURRENCIES, 1.2)),
    column("controlling_area", "CHAR(4) NOT NULL", Of("company_code"), code("A999", 5, 1.2)),
    column("chart_of_accounts", "CHAR(4) NOT NULL", Of("company_code"), code("AAAA", 4, 1.0)),
    column("sales_organisation", "CHAR(4) NOT NULL", Document, code("9999", 54, 1.0)),
    column("distribution_channel", "CHAR(2) NOT NULL", Document, code("99", 8, 1.4)),
    column("division", "CHAR(2) NOT NULL", Item, code("99", 16, 1.2)),
    column("division_text", "VARCHAR(40) NOT NULL", Of("division"), TextOfCode),
    sparse(60, "sales_office", "VARCHAR(4)", Document, code("A999", 240, 0.9)),
    column("sales_office_text", "VARCHAR(40)", Of("sales_office"), TextOfCode),
    column("sales_group", "CHAR(3) NOT NULL", Document, code("A99", 620, 0.8)),
    column("sales_employee", "INTEGER NOT NULL", Document, integer(100_000, 7, 2_400, 0.8)),
    column("plant", "CHAR(4) NOT NULL", Item, code("9999", 130, 1.0)),
    column("plant_name", "VARCHAR(40) NOT NULL", Of("plant"), TextOfCode),
    column("plant_country", "CHAR(2) NOT NULL", Of("plant"), List(COUNTRIES, 0.9)),
    sparse(40, "storage_location", "VARCHAR(4)", Item, code("9999", 210, 1.1)),
    column("shipping_point", "CHAR(4) NOT NULL", Item, code("A999", 150, 1.0)),
    sparse(110, "route", "VARCHAR(6)", Document, code("A99999", 900, 0.9)),
    column("profit_centre", "VARCHAR(10) NOT NULL", Item, code("00009999A9", 1_800, 0.8)),
    sparse(780, "cost_centre", "VARCHAR(10)", Item, code("000099999A", 2_600, 0.8)),
    column("business_area", "CHAR(4) NOT NULL", Item, code("9999", 24, 1.0)),
    sparse(930, "internal_order", "VARCHAR(12)", Item, code("000009999999", 3_000, 0.7)),
    // Customer
    many("customer_no", "VARCHAR(10) NOT NULL", Document, Many::CustomerNumber),
    many("customer_name", "VARCHAR(60) NOT NULL", Of("customer_no"), Many::CustomerName),
    column("customer_country", "CHAR(2) NOT NULL", Of("customer_no"), List(COUNTRIES, 1.1)),
    column("customer_region", "VARCHAR(25) NOT NULL", Of("customer_no"), List(REGIONS, 0.8)),
    column("customer_group", "CHAR(2) NOT NULL", Of("customer_no"), code("99", 22, 1.1)),
    column("customer_group_text", "VARCHAR(40) NOT NULL", Of("customer_group"), TextOfCode),
    column("customer_industry", "CHAR(4) NOT NULL", Of("customer_no"), code("99A9", 120, 0.9)),
    column("customer_industry_text", "VARCHAR(40) NOT NULL", Of("customer_industry"), TextOfCode),
    column("customer_account_group", "CHAR(4) NOT NULL", Of("customer_no"), code("AAAA", 9, 1.6)),
    column("customer_language", "CHAR(1) NOT NULL", Of("customer_no"), List(LANGUAGES, 1.3)),
    column("customer_since", "DATE NOT NULL", Of("customer_no"), date(0, 5_000, 0.2)),
    column("customer_class", "CHAR(1) NOT NULL", Of("customer_no"), List(&["C", "B", "A", "D"], 0.9)),
    sparse(200, "price_group", "VARCHAR(2)", Of("customer_no"), code("99", 12, 1.2)),
    sparse(150, "price_list", "VARCHAR(2)", Of("customer_no"), code("A9", 30, 1.1)),
    sparse(640, "buying_group", "VARCHAR(6)", Of("customer_no"), code("A99999", 420, 0.9)),
    sparse(960, "tax_exemption", "VARCHAR(8)", Of("customer_no"), code("A9999999", 800, 0.6)),
    column("payment_terms", "CHAR(4) NOT NULL", Of("customer_no"), code("Z99A", 62, 1.2)),
    column("payment_terms_text", "VARCHAR(40) NOT NULL", Of("payment_terms"), TextOfCode),
    sparse(350, "dunning_area", "VARCHAR(2)", Of("customer_no"), code("A9", 6, 1.2)),
    column("credit_control_area", "CHAR(4) NOT NULL", Of("company_code"), code("9999", 7, 1.0)),
    column("risk_category", "CHAR(3) NOT NULL", Of("customer_no"), code("A99", 11, 1.3)),
    column("credit_limit", "DECIMAL(15,2) NOT NULL", Of("customer_no"), decimal(2, 0, 250_000, 120, 1.2)),
    sparse(120, "ship_to_country", "CHAR(2)", Document, List(COUNTRIES, 1.1)),
    sparse(120, "ship_to_region", "VARCHAR(25)", Document, List(REGIONS, 0.8)),
    column("transport_zone", "VARCHAR(10) NOT NULL", Document, code("A999999999", 1_400, 0.8)),
    sparse(870, "one_time_customer", "VARCHAR(1)", Document, FLAG),
    many("contact_email", "VARCHAR(80) NOT NULL", Document, Many::ContactEmail),
    // Material
    many("material_no", "VARCHAR(18) NOT NULL", Item, Many::MaterialNumber),
    column("material_text", "VARCHAR(40) NOT NULL", Of("material_no"), text(4_800, 0.4)),
    column("material_type", "CHAR(4) NOT NULL", Of("material_no"), code("AAAA", 14, 1.5)),
    column("material_group", "VARCHAR(9) NOT NULL", Of("material_no"), code("999A99", 860, 0.8)),
    column("material_group_text", "VARCHAR(40) NOT NULL", Of("material_group"), TextOfCode),
    column("hierarchy_level_1", "CHAR(5) NOT NULL", Of("material_group"), code("A9999", 14, 0.9)),
    column("hierarchy_level_1_text", "VARCHAR(40) NOT NULL", Of("hierarchy_level_1"), TextOfCode),
    column("hierarchy_level_2", "CHAR(10) NOT NULL", Of("material_group"), code("A9999A9999", 95, 0.8)),
    column("hierarchy_level_2_text", "VARCHAR(40) NOT NULL", Of("hierarchy_level_2"), TextOfCode),
    column("hierarchy_level_3", "CHAR(18) NOT NULL", Of("material_no"), code("A9999A9999A9999999", 2_700, 0.6)),
    column("base_unit", "VARCHAR(3) NOT NULL", Of("material_no"), List(UNITS, 1.8)),
    column("sales_unit", "VARCHAR(3) NOT NULL", Item, List(UNITS, 1.7)),
    column("conversion_numerator", "INTEGER NOT NULL", Of("material_no"), integer(1, 1, 60, 1.9)),
    column("conversion_denominator", "INTEGER NOT NULL", Of("material_no"), integer(1, 1, 20, 2.6)),
    column("weight_unit", "VARCHAR(3) NOT NULL", Of("material_no"), List(&["KG", "G", "TO"], 2.2)),
    column("gross_weight", "DECIMAL(15,3) NOT NULL", Of("material_no"), decimal(3, 50, 125, 3_200, 0.7)),
    sparse(180, "volume", "DECIMAL(15,3)", Of("material_no"), decimal(3, 0, 20, 900, 1.0)),
    column("valuation_class", "CHAR(4) NOT NULL", Of("material_no"), code("9999", 26, 1.1)),
    column("abc_class", "CHAR(1) NOT NULL", Of("material_no"), List(&["C", "B", "A"], 0.7)),
    sparse(550, "batch_group", "VARCHAR(8)", Of("material_no"), code("A9999999", 1_100, 0.7)),
    sparse(700, "dangerous_goods_class", "VARCHAR(3)", Of("material_no"), code("9A9", 17, 1.0)),
    column("country_of_origin", "CHAR(2) NOT NULL", Of("material_no"), List(COUNTRIES, 1.2)),
    column("commodity_code", "VARCHAR(11) NOT NULL", Of("material_no"), code("99999999", 1_500, 0.7)),
    sparse(820, "season", "VARCHAR(4)", Item, code("A999", 18, 0.8)),
    column("brand", "VARCHAR(40) NOT NULL", Of("material_no"), text(64, 1.0)),
    // Dates
    column("document_date", "DATE NOT NULL", Document, date(0, 1, 0.0)),
    column("created_on", "DATE NOT NULL", Document, date(0, 3, 2.5)),
    sparse(330, "changed_on", "DATE", Item, date(0, 90, 1.0)),
    column("requested_delivery_date", "DATE NOT NULL", Document, date(1, 60, 0.7)),
    column("confirmed_delivery_date", "DATE NOT NULL", Item, date(2, 75, 0.6)),
    sparse(90, "goods_issue_date", "DATE", Item, date(2, 80, 0.6)),
    sparse(140, "billing_date", "DATE", Item, date(3, 90, 0.6)),
    sparse(140, "due_date", "DATE", Document, date(14, 90, 0.4)),
    sparse(310, "clearing_date", "DATE", Document, date(14, 130, 0.3)),
    column("pricing_date", "DATE NOT NULL", Document, date(-5, 12, 1.5)),
    column("exchange_rate_date", "DATE NOT NULL", Document, date(-3, 4, 1.8)),
    sparse(910, "cancelled_on", "DATE", Item, date(1, 120, 0.5)),
    sparse(850, "contract_valid_from", "DATE", Document, date(-400, 390, 0.2)),
    many("created_at", "TIMESTAMP NOT NULL", Document, Many::CreatedAt),
    column("fiscal_year", "INTEGER NOT NULL", Of("document_date"), PartOfDate(DatePart::Year)),
    column("fiscal_period", "INTEGER NOT NULL", Of("document_date"), PartOfDate(DatePart::Month)),
    column("calendar_week", "INTEGER NOT NULL", Of("document_date"), PartOfDate(DatePart::Week)),
    column("fiscal_year_variant", "CHAR(2) NOT NULL", Of("company_code"), List(&["K4", "V3", "V6"], 2.0)),
    // Amounts and rates
    many("quantity", "DECIMAL(13,3) NOT NULL", Item, Many::Quantity),
    many("net_amount", "DECIMAL(15,2) NOT NULL", Item, Many::NetAmount),
    many("tax_amount", "DECIMAL(15,2) NOT NULL", Item, Many::TaxAmount),
    many("cost_amount", "DECIMAL(15,2) NOT NULL", Item, Many::CostAmount),
    column("document_currency", "CHAR(3) NOT NULL", Document, List(CURRENCIES, 1.6)),
    column("exchange_rate", "DECIMAL(9,5) NOT NULL", Document, decimal(5, 100_000, 137, 1_300, 1.3)),
    column("exchange_rate_type", "CHAR(1) NOT NULL", Document, List(&["M", "B", "G"], 2.5)),
    column("tax_rate", "DECIMAL(5,2) NOT NULL", Item, decimal(2, 0, 100, 26, 1.2)),
    column("tax_code", "CHAR(2) NOT NULL", Item, code("A9", 34, 1.3)),
    column("discount_percent", "DECIMAL(5,2) NOT NULL", Item, decimal(2, 0, 50, 90, 1.3)),
    sparse(500, "surcharge_percent", "DECIMAL(5,2)", Item, decimal(2, 0, 25, 40, 2.2)),
    column("cash_discount_percent", "DECIMAL(5,3) NOT NULL", Document, decimal(3, 0, 500, 9, 1.2)),
    column("freight_amount", "DECIMAL(15,2) NOT NULL", Document, decimal(2, 0, 490, 600, 1.4)),
    column("price_unit", "DECIMAL(5,0) NOT NULL", Of("material_no"), decimal(0, 1, 99, 4, 2.2)),
    column("commission_percent", "DECIMAL(5,2) NOT NULL", Document, decimal(2, 0, 25, 24, 1.6)),
    column("probability", "INTEGER NOT NULL", Document, integer(0, 10, 11, 1.0)),
    sparse(420, "condition_group", "VARCHAR(2)", Item, code("A9", 44, 1.1)),
    column("account_assignment_group", "CHAR(2) NOT NULL", Of("customer_no"), code("99", 6, 1.4)),
    column("gl_account", "CHAR(10) NOT NULL", Item, code("0000999999", 260, 1.0)),
    column("gl_account_text", "VARCHAR(40) NOT NULL", Of("gl_account"), TextOfCode),
    // Statuses and flags
    column("overall_status", "VARCHAR(20) NOT NULL", Item, List(STATUSES, 1.6)),
    column("delivery_status", "CHAR(1) NOT NULL", Item, List(&["C", "A", "B"], 1.8)),
    column("billing_status", "CHAR(1) NOT NULL", Item, List(&["C", "A", "B"], 1.6)),
    column("credit_status", "CHAR(1) NOT NULL", Document, List(&["A", "D", "B", "C"], 2.0)),
    sparse(940, "rejection_reason", "VARCHAR(2)", Item, code("Z9", 18, 1.0)),
    column("rejection_reason_text", "VARCHAR(40)", Of("rejection_reason"), TextOfCode),
    sparse(960, "delivery_block", "VARCHAR(2)", Document, code("Z9", 12, 1.0)),
    sparse(970, "billing_block", "VARCHAR(2)", Item, code("9A", 14, 1.0)),
    sparse(985, "deletion_flag", "VARCHAR(1)", Item, FLAG),
    sparse(700, "complete_delivery", "VARCHAR(1)", Document, FLAG),
    sparse(600, "batch_managed", "VARCHAR(1)", Of("material_no"), FLAG),
    sparse(920, "free_of_charge", "VARCHAR(1)", Item, FLAG),
    sparse(990, "third_party", "VARCHAR(1)", Item, FLAG),
    column("is_return", "CHAR(1) NOT NULL", Document, YES_NO),
    column("is_intercompany", "CHAR(1) NOT NULL", Of("customer_no"), YES_NO),
    column("is_export", "CHAR(1) NOT NULL", Document, List(&["N", "Y"], 1.2)),
    // Logistics, people and texts
    column("incoterms", "CHAR(3) NOT NULL", Document, List(INCOTERMS, 1.3)),
    sparse(240, "incoterms_place", "VARCHAR(40)", Document, List(REGIONS, 0.7)),
    column("shipping_condition", "CHAR(2) NOT NULL", Document, code("99", 15, 1.3)),
    column("created_by", "VARCHAR(12) NOT NULL", Document, code("AA99999", 1_600, 1.0)),
    column("responsible_manager", "VARCHAR(40) NOT NULL", Of("sales_group"), List(NAMES, 0.5)),
    sparse(890, "project", "VARCHAR(12)", Document, code("A-999999", 1_200, 0.7)),
    sparse(650, "warehouse_no", "VARCHAR(3)", Item, code("9A9", 45, 1.0)),
    sparse(965, "header_note", "VARCHAR(60)", Document, text(3_500, 0.6)),
    sparse(480, "campaign", "VARCHAR(10)", Document, code("A99A99", 320, 0.9)),
    many("external_reference", "VARCHAR(35) NOT NULL", Document, Many::ExternalReference),
    many("comment", "VARCHAR(200)", Item, Many::Comment),
];
