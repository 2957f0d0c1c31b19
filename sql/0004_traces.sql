-- The trace of the request that created an order (W3C Trace Context): in the log lines of its jobs, and in its webhooks.

ALTER TABLE orders
    ADD COLUMN trace_id CHAR(32) CHARACTER SET ascii NULL COMMENT 'NULL: an order of an earlier release',
    ADD COLUMN is_trace_sampled BOOLEAN NOT NULL DEFAULT TRUE COMMENT 'the flag of the traceparent that webhooks get';
