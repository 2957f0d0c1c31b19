-- The client's own data on an order.

ALTER TABLE orders
    ADD COLUMN metadata BLOB NULL COMMENT 'lines of key, tab and value; NULL: none';
