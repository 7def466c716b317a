CREATE TABLE nation (
  n_nationkey INTEGER NOT NULL,
  n_name VARCHAR(25) NOT NULL,
  n_regionkey INTEGER NOT NULL,
  n_comment VARCHAR(152) NOT NULL
);
