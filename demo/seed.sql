-- Creates the demo shop: invented data, with the same rows on every start. A superuser loads this file once into an
-- empty database. server.ts grants columns to the login that Vitrine uses.
SET client_min_messages = warning;
SET timezone = 'UTC';

-- Returns a pseudo-random number from 0 to n - 1. Equal arguments always give the same number.
CREATE FUNCTION pg_temp.pick(i integer, salt text, n integer) RETURNS integer LANGUAGE sql IMMUTABLE AS
$$ SELECT ('x' || substr(md5(salt || ':' || i), 1, 7))::bit(28)::integer % n $$;
CREATE FUNCTION pg_temp.one_of(i integer, salt text, choices text[]) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT choices[1 + pg_temp.pick(i, salt, cardinality(choices))] $$;

CREATE TYPE order_status AS ENUM ('pending', 'paid', 'shipped', 'delivered', 'cancelled', 'returned');
COMMENT ON TYPE order_status IS 'The progress of an order.';

-- ---------------------------------------------------------------- catalogue
CREATE TABLE categories (
  id integer PRIMARY KEY,
  parent_id integer REFERENCES categories,
  name text NOT NULL,
  slug text NOT NULL UNIQUE
);
COMMENT ON TABLE categories IS 'Product categories, two levels deep.';
COMMENT ON COLUMN categories.parent_id IS 'The parent category; null for a top-level category.';
INSERT INTO categories VALUES
  (1, NULL, 'Home', 'home'), (2, NULL, 'Outdoor', 'outdoor'), (3, NULL, 'Kitchen', 'kitchen'), (4, NULL, 'Office', 'office'),
  (5, 1, 'Lighting', 'lighting'), (6, 1, 'Textiles', 'textiles'), (7, 1, 'Storage', 'storage'),
  (8, 2, 'Camping', 'camping'), (9, 2, 'Garden', 'garden'), (10, 2, 'Cycling', 'cycling'),
  (11, 3, 'Cookware', 'cookware'), (12, 3, 'Coffee', 'coffee'), (13, 3, 'Tableware', 'tableware'),
  (14, 4, 'Desks', 'desks'), (15, 4, 'Stationery', 'stationery');

CREATE TABLE products (
  id integer PRIMARY KEY,
  sku text NOT NULL UNIQUE,
  name text NOT NULL,
  category_id integer NOT NULL REFERENCES categories,
  price numeric(10,2) NOT NULL CHECK (price > 0),
  purchase_price numeric(10,2) NOT NULL,
  weight_grams integer NOT NULL,
  stock integer NOT NULL,
  active boolean NOT NULL,
  tags text[] NOT NULL,
  attributes jsonb NOT NULL,
  launched_on date NOT NULL
);
COMMENT ON TABLE products IS 'Every product ever sold. Discontinued products are not active.';
COMMENT ON COLUMN products.price IS 'Price for the customer in euro, VAT included.';
COMMENT ON COLUMN products.purchase_price IS 'What the shop pays for the product, in euro.';
COMMENT ON COLUMN products.stock IS 'Pieces in the warehouse.';
COMMENT ON COLUMN products.attributes IS 'Colour, material and warranty in years.';
INSERT INTO products
SELECT i, 'SKU-' || lpad(i::text, 4, '0'),
  pg_temp.one_of(i, 'adjective', ARRAY['Nordic','Compact','Classic','Folding','Solid','Light','Handmade','Modular','Everyday','Quiet'])
    || ' ' || noun || ' ' || (1 + i / 45),
  category, price, round(price * (0.45 + pg_temp.pick(i, 'margin', 25) / 100.0), 2), 80 + pg_temp.pick(i, 'weight', 6000),
  pg_temp.pick(i, 'stock', 240), pg_temp.pick(i, 'active', 12) > 0,
  ARRAY[pg_temp.one_of(i, 'tag', ARRAY['new','bestseller','sale','eco','gift'])]
    || CASE WHEN i % 7 = 0 THEN ARRAY['limited'] ELSE ARRAY[]::text[] END,
  jsonb_build_object('color', pg_temp.one_of(i, 'color', ARRAY['oak','black','white','sand','forest','copper']),
    'material', pg_temp.one_of(i, 'material', ARRAY['wood','steel','cotton','ceramic','glass']), 'warranty', 1 + i % 5),
  date '2022-01-10' + pg_temp.pick(i, 'launch', 1500)
FROM (
  SELECT i, 5 + i % 11 AS category,
    (ARRAY['Lamp','Blanket','Shelf','Tent','Planter','Bike Bag','Pan','Grinder','Bowl','Desk','Notebook'])[1 + i % 11] AS noun,
    round((6 + pg_temp.pick(i, 'price', 24000) / 100.0)::numeric, 2) AS price
  FROM generate_series(1, 165) AS i
) AS made;

-- ---------------------------------------------------------------- people
CREATE TABLE customers (
  id integer PRIMARY KEY,
  full_name text NOT NULL,
  email text NOT NULL UNIQUE,
  phone text,
  password_hash text NOT NULL,
  country char(2) NOT NULL,
  city text NOT NULL,
  segment text NOT NULL CHECK (segment IN ('private', 'business')),
  newsletter boolean NOT NULL,
  created_at timestamptz NOT NULL
);
COMMENT ON TABLE customers IS 'People with an account at the shop.';
COMMENT ON COLUMN customers.country IS 'ISO 3166 code of the customer''s country of residence.';
COMMENT ON COLUMN customers.segment IS 'private or business; business customers order with an invoice.';
COMMENT ON COLUMN customers.newsletter IS 'Whether the customer asked for the newsletter.';
INSERT INTO customers
SELECT i, first || ' ' || last, lower(first) || '.' || lower(last) || i || '@example.com',
  CASE WHEN i % 3 > 0 THEN '+49 30 55' || lpad(pg_temp.pick(i, 'phone', 100000)::text, 5, '0') END,
  '$argon2id$v=19$' || md5('password' || i), place[1], place[2],
  CASE WHEN pg_temp.pick(i, 'segment', 5) = 0 THEN 'business' ELSE 'private' END, pg_temp.pick(i, 'newsletter', 3) = 0,
  timestamptz '2023-03-01 08:00+00' + pg_temp.pick(i, 'created', 900) * interval '1 day' + pg_temp.pick(i, 'hour', 900) * interval '1 minute'
FROM (
  SELECT i, pg_temp.one_of(i, 'first', ARRAY['Ada','Bruno','Clara','Dimitri','Elif','Farid','Greta','Hugo','Ines','Jonas','Karin','Luca','Mira','Nils','Olga','Pavel','Rosa','Sven','Tala','Yusuf']) AS first,
    pg_temp.one_of(i, 'last', ARRAY['Adler','Bauer','Costa','Dubois','Eriksen','Fischer','Garcia','Hansen','Ivanova','Jansen','Kowalski','Lopez','Moreau','Novak','Okafor','Petrov','Rossi','Silva','Tanaka','Weber']) AS last,
    string_to_array(pg_temp.one_of(i, 'place', ARRAY['DE Berlin','DE Hamburg','DE Munich','FR Paris','FR Lyon','ES Madrid','IT Milan','NL Utrecht','PL Krakow','AT Vienna','SE Malmo','PT Porto']), ' ') AS place
  FROM generate_series(1, 480) AS i
) AS made;

CREATE TABLE addresses (
  id integer PRIMARY KEY,
  customer_id integer NOT NULL REFERENCES customers,
  kind text NOT NULL CHECK (kind IN ('delivery', 'invoice')),
  street text NOT NULL,
  postal_code text NOT NULL,
  city text NOT NULL,
  country char(2) NOT NULL
);
COMMENT ON TABLE addresses IS 'Delivery and invoice addresses of customers.';
INSERT INTO addresses
SELECT row_number() OVER (ORDER BY c.id, kind), c.id, kind,
  pg_temp.one_of(c.id, kind, ARRAY['Lindenweg','Rue Verte','Calle Mayor','Via Roma','Dorpsstraat','Parkgatan']) || ' ' || (1 + pg_temp.pick(c.id, 'house', 140)),
  lpad(pg_temp.pick(c.id, 'postal', 99999)::text, 5, '0'), c.city, c.country
FROM customers AS c JOIN (VALUES ('delivery'), ('invoice')) AS kinds(kind) ON kind = 'delivery' OR c.segment = 'business';

CREATE TABLE employees (
  id integer PRIMARY KEY,
  full_name text NOT NULL,
  title text NOT NULL,
  department text NOT NULL,
  manager_id integer REFERENCES employees,
  hired_on date NOT NULL,
  salary numeric(10,2) NOT NULL,
  iban text NOT NULL
);
COMMENT ON TABLE employees IS 'The people who run the shop.';
COMMENT ON COLUMN employees.manager_id IS 'The person this employee reports to; null for the head of the shop.';
INSERT INTO employees
SELECT i, pg_temp.one_of(i, 'employee', ARRAY['Anna','Bela','Chris','Dana','Emre','Flora','Goran','Hanna']) || ' '
    || pg_temp.one_of(i, 'surname', ARRAY['Berg','Conti','Duran','Engel','Frank','Gomez','Haas','Iwata','Jung']),
  CASE WHEN i = 1 THEN 'Head of the shop' WHEN i <= 5 THEN 'Lead' ELSE pg_temp.one_of(i, 'title', ARRAY['Clerk','Buyer','Packer','Developer','Analyst']) END,
  CASE WHEN i = 1 THEN 'Office' ELSE (ARRAY['Warehouse','Purchasing','Service','Online'])[1 + i % 4] END,
  CASE WHEN i = 1 THEN NULL WHEN i <= 5 THEN 1 ELSE 2 + (i + 2) % 4 END,
  date '2019-02-01' + pg_temp.pick(i, 'hired', 2400), 30000 + pg_temp.pick(i, 'salary', 45000), 'DE' || lpad(pg_temp.pick(i, 'iban', 100000000)::text, 20, '7')
FROM generate_series(1, 26) AS i;

-- ---------------------------------------------------------------- trade
CREATE TABLE orders (
  id integer PRIMARY KEY,
  customer_id integer NOT NULL REFERENCES customers,
  status order_status NOT NULL,
  ordered_at timestamptz NOT NULL,
  shipped_at timestamptz,
  channel text NOT NULL CHECK (channel IN ('web', 'app', 'store')),
  handled_by integer REFERENCES employees,
  note text
);
COMMENT ON TABLE orders IS 'One row per order, whatever its status.';
COMMENT ON COLUMN orders.shipped_at IS 'When the parcel left the warehouse; null until then.';
COMMENT ON COLUMN orders.channel IS 'web, app or store.';
INSERT INTO orders
SELECT i, customer, status, ordered_at,
  CASE WHEN status IN ('shipped', 'delivered', 'returned') THEN ordered_at + (4 + pg_temp.pick(i, 'ship', 92)) * interval '1 hour' END,
  pg_temp.one_of(i, 'channel', ARRAY['web','web','web','app','app','store']), 1 + pg_temp.pick(i, 'handler', 26),
  CASE WHEN i % 17 = 0 THEN pg_temp.one_of(i, 'note', ARRAY['Please ring twice.','A gift: no invoice in the parcel.','Leave it with the neighbour.']) END
FROM (
  SELECT i, 1 + pg_temp.pick(pg_temp.pick(i, 'customer', 100000), 'loyal', 480) AS customer,
    pg_temp.one_of(i, 'status', ARRAY['pending','paid','shipped','delivered','delivered','delivered','delivered','delivered','cancelled','returned'])::order_status AS status,
    timestamptz '2024-01-02 06:00+00' + (i * 655 + pg_temp.pick(i, 'minute', 600)) * interval '1 minute' AS ordered_at
  FROM generate_series(1, 2200) AS i
) AS made;
CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_by_time ON orders (ordered_at);

CREATE TABLE order_items (
  order_id integer NOT NULL REFERENCES orders,
  line integer NOT NULL,
  product_id integer NOT NULL REFERENCES products,
  quantity integer NOT NULL CHECK (quantity > 0),
  unit_price numeric(10,2) NOT NULL,
  PRIMARY KEY (order_id, line)
);
COMMENT ON TABLE order_items IS 'The lines of each order.';
COMMENT ON COLUMN order_items.unit_price IS 'The price at the time of the order, in euro, for one piece.';
INSERT INTO order_items
SELECT o.id, line, p.id, 1 + pg_temp.pick(o.id * 10 + line, 'quantity', 4), p.price
FROM orders AS o
CROSS JOIN LATERAL generate_series(1, 1 + pg_temp.pick(o.id, 'lines', 4)) AS line
JOIN products AS p ON p.id = 1 + pg_temp.pick(o.id * 10 + line, 'product', 165);
CREATE INDEX order_items_by_product ON order_items (product_id);

CREATE TABLE payments (
  id integer PRIMARY KEY,
  order_id integer NOT NULL REFERENCES orders,
  method text NOT NULL CHECK (method IN ('card', 'transfer', 'wallet')),
  amount numeric(12,2) NOT NULL,
  paid_at timestamptz NOT NULL,
  refunded boolean NOT NULL,
  card_last4 char(4)
);
COMMENT ON TABLE payments IS 'Money received for orders; refunded if the order was returned.';
INSERT INTO payments
SELECT row_number() OVER (ORDER BY o.id), o.id, method, amount, o.ordered_at + pg_temp.pick(o.id, 'paid', 300) * interval '1 minute',
  o.status = 'returned', CASE WHEN method = 'card' THEN lpad(pg_temp.pick(o.id, 'last4', 10000)::text, 4, '0') END
FROM orders AS o
JOIN (SELECT order_id, sum(quantity * unit_price) AS amount FROM order_items GROUP BY order_id) AS total ON total.order_id = o.id
CROSS JOIN LATERAL (SELECT pg_temp.one_of(o.id, 'method', ARRAY['card','card','card','transfer','wallet']) AS method) AS chosen
WHERE o.status NOT IN ('pending', 'cancelled');

CREATE TABLE reviews (
  id integer PRIMARY KEY,
  product_id integer NOT NULL REFERENCES products,
  customer_id integer NOT NULL REFERENCES customers,
  rating smallint NOT NULL CHECK (rating BETWEEN 1 AND 5),
  title text NOT NULL,
  body text,
  created_at timestamptz NOT NULL
);
COMMENT ON TABLE reviews IS 'Customers'' reviews of products they bought.';
COMMENT ON COLUMN reviews.rating IS 'Stars, from 1 to 5.';
INSERT INTO reviews
SELECT row_number() OVER (ORDER BY o.id, i.line), i.product_id, o.customer_id, rating,
  (ARRAY['Broke within a week','Not for me','It is all right','Good','Would buy it again'])[rating],
  CASE WHEN o.id % 4 = 0 THEN pg_temp.one_of(o.id, 'body', ARRAY['Came well packed.','Smaller than I thought.','The colour is lovely.','Delivery took a while.']) END,
  o.ordered_at + (5 + pg_temp.pick(o.id, 'review', 30)) * interval '1 day'
FROM orders AS o JOIN order_items AS i ON i.order_id = o.id
CROSS JOIN LATERAL (SELECT 1 + (pg_temp.pick(o.id * 10 + i.line, 'rating', 4) + pg_temp.pick(i.product_id, 'quality', 3)) % 5 AS rating) AS given
WHERE o.status = 'delivered' AND pg_temp.pick(o.id * 10 + i.line, 'reviewed', 4) = 0;

CREATE VIEW monthly_revenue AS
SELECT date_trunc('month', o.ordered_at AT TIME ZONE 'UTC')::date AS month, count(DISTINCT o.id) AS orders,
  sum(i.quantity * i.unit_price) AS revenue
FROM orders AS o JOIN order_items AS i ON i.order_id = o.id
WHERE o.status NOT IN ('cancelled', 'returned') GROUP BY 1;
COMMENT ON VIEW monthly_revenue IS 'Orders and revenue in euro by month, without cancelled and returned orders.';

-- ---------------------------------------------------------------- never exposed
CREATE TABLE staff_logins (
  employee_id integer PRIMARY KEY REFERENCES employees,
  username text NOT NULL UNIQUE,
  password_hash text NOT NULL,
  recovery_code text NOT NULL
);
INSERT INTO staff_logins
SELECT id, 'staff' || id, '$argon2id$v=19$' || md5('staff' || id), upper(substr(md5('recovery' || id), 1, 10)) FROM employees;

ANALYZE;
