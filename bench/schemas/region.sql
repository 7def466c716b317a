CREATE TABLE region (
  r_regionkey INTEGER NOT NULL,
  r_name VARCHAR(25) NOT NULL,
  r_comment VARCHAR(152) NOT NULL
);
