//! Aggregation.
