// The database of the datasources in test/stores. The tests of an upgrade query it, and scripts/keep-store.ts
// introspects it.
export const UPGRADED_SHOP = `
  CREATE TABLE customers (id int PRIMARY KEY, email text, city text);
  CREATE TABLE orders (id int PRIMARY KEY, customer_id int REFERENCES customers, status text, total numeric);
  INSERT INTO customers VALUES (1, 'a@example.test', 'Bonn');
  INSERT INTO orders VALUES (1, 1, 'paid', 7), (2, 1, 'sent', 8), (3, 1, 'sent', 9);
  CREATE ROLE reader LOGIN PASSWORD 'reader-pw';
  GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader`

/** The root key of the stores in test/stores. */
export const UPGRADED_SECRET = Buffer.alloc(32, 28)
