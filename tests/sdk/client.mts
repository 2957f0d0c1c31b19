// A whole order with a client generated from doc/openapi.yaml: openapi-typescript makes schema.d.ts, openapi-fetch calls.
// Each step prints one line of JSON, {"step", "error"}; test_client.py checks each in a test.
import { strict as assert } from "node:assert";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import createClient from "openapi-fetch";
import { Webhook } from "standardwebhooks";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

const baseUrl = setting("IMGWARD_URL");
const picture = readFileSync(setting("PICTURE"));
const api = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${setting("IMGWARD_KEY")}` } });
const stranger = createClient<paths>({ baseUrl });

async function step(name: string, run: () => Promise<void>): Promise<void> {
  let error: string | null = null;
  try {
    await run();
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.stack ?? thrown.message : String(thrown);
  }
  console.log(JSON.stringify({ step: name, error }));
}

// The data of a response; an API error is thrown with its code.
function dataOf<Data>(answer: { data?: { data: Data }; error?: Schemas["Error"] | Schemas["Problem"]; response: Response }): Data {
  assert.ok(answer.data, `${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data.data;
}

async function upload(url: string | null | undefined, bytes: Uint8Array): Promise<void> {
  assert.ok(url);
  const answer = await fetch(url, { method: "PUT", body: bytes, headers: { "Content-Type": "image/jpeg" } });
  assert.equal(answer.status, 201, await answer.text());
}

async function ended(orderId: string): Promise<Schemas["OrderDetail"]> {
  for (const end = Date.now() + 240_000; Date.now() < end; ) {
    const order = dataOf(await api.GET("/api/v2/orders/{orderId}", { params: { path: { orderId } } }));
    if (order.status !== "pending" && order.status !== "inProgress") return order;
    await new Promise((done) => setTimeout(done, 200));
  }
  throw new Error(`order ${orderId} did not end`);
}

async function downloaded(orderId: string): Promise<Buffer> {
  const link = dataOf(await api.GET("/api/v2/orders/{orderId}/download", { params: { path: { orderId } } }));
  assert.equal(link.expiresIn, 3600);
  assert.equal(link.contentType, "image/jpeg");
  const answer = await fetch(link.downloadUrl);
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get("content-type"), "image/jpeg");
  return Buffer.from(await answer.arrayBuffer());
}

// A JPEG of the same size: SOI, EOI, and the frame header's height and width.
function assertPicture(bytes: Buffer): void {
  const sizeOf = (jpeg: Buffer) => {
    let at = 2;
    while (![0xc0, 0xc1, 0xc2].includes(jpeg.readUInt8(at + 1))) at += 2 + jpeg.readUInt16BE(at + 2);
    return jpeg.subarray(at + 5, at + 9).toString("hex");
  };
  assert.equal(bytes.readUInt16BE(0), 0xffd8);
  assert.equal(bytes.readUInt16BE(bytes.length - 2), 0xffd9);
  assert.equal(sizeOf(bytes), sizeOf(picture));
  assert.ok(!bytes.equals(picture), "the picture is unchanged");
}

let orderId = "";
let marked: Buffer = Buffer.alloc(0);
const text = "sent to Ada, ünïcödé ✓";

await step("an anti-AI order is created", async () => {
  const body: Schemas["AntiAiRequest"] = {
    idempotencyKey: randomUUID(),
    orderName: "generated client",
    files: [{ fileName: "beach.jpg" }],
    options: { strength: "low" },
    metadata: { "customer no.": "47 & 11" },
  };
  const first = await api.POST("/api/v2/orders/anti-ai", { body });
  const created = dataOf(first);
  assert.equal(first.response.status, 201);
  assert.equal(created.status, "pending");
  assert.equal(created.orderName, "generated client");
  assert.equal(typeof created.files[0]?.fileId, "number");
  const again = await api.POST("/api/v2/orders/anti-ai", { body });
  assert.equal(again.response.status, 200);
  assert.equal(again.response.headers.get("Idempotent-Replayed"), "true");
  assert.equal(dataOf(again).orderId, created.orderId);
  orderId = created.orderId;
});

await step("it is not confirmed before its upload", async () => {
  const { error, response } = await api.POST("/api/v2/orders/anti-ai/confirm", { body: { idempotencyKey: randomUUID(), orderId } });
  assert.equal(response.status, 400);
  assert.equal(error?.code, "ORDER_FILE_NOT_UPLOADED");
  assert.match(error.details?.[0]?.message ?? "", /beach\.jpg/);
});

await step("its upload URL is refreshed and takes the file", async () => {
  const fresh = dataOf(await api.POST("/api/v2/orders/{orderId}/refresh-urls", { params: { path: { orderId } } }));
  assert.equal(fresh.files[0]?.uploaded, false);
  await upload(fresh.files[0]?.uploadUrl, picture);
});

await step("it is confirmed and completes", async () => {
  const confirmed = dataOf(await api.POST("/api/v2/orders/anti-ai/confirm", { body: { idempotencyKey: randomUUID(), orderId } }));
  assert.equal(confirmed.orderId, orderId);
  const order = await ended(orderId);
  assert.equal(order.status, "complete");
  assert.equal(order.type, "antiAi");
  assert.equal(order.channel, "api");
  assert.equal(order.errors, null);
  assert.deepEqual(order.watermarks, []);
  assert.equal(order.files[0]?.status, "complete");
  assert.equal(order.files[0].error, null);
  assert.ok(Date.parse(order.updatedAt) >= Date.parse(order.createdAt));
});

await step("its result is a picture of the same size", async () => assertPicture(await downloaded(orderId)));

await step("an order of URLs starts at once", async () => {
  const answer = await api.POST("/api/v2/orders/anti-ai/with-urls", {
    body: { idempotencyKey: randomUUID(), files: [{ fileName: "a.jpg", imageUrl: "https://127.0.0.1:9/a.jpg" }] },
  });
  assert.equal(dataOf(answer).status, "inProgress");
});

await step("a watermark is embedded", async () => {
  const created = dataOf(await api.POST("/api/v2/orders/wtr-embed", {
    body: { idempotencyKey: randomUUID(), files: [{ fileName: "plan.jpg", watermarks: [{ text }] }] },
  }));
  assert.equal(created.files[0]?.fileFormat, "JPG");
  assert.equal(typeof created.files[0].fileId, "string");
  await upload(created.files[0].uploadUrl, picture);
  const order = await ended(created.orderId);
  assert.equal(order.status, "complete");
  assert.deepEqual(order.watermarks, [text]);
  assert.deepEqual(order.files[0]?.watermarks, [text]);
  marked = await downloaded(created.orderId);
  assertPicture(marked);
});

await step("the watermark is extracted", async () => {
  const created = dataOf(await api.POST("/api/v2/orders/wtr-extract", {
    body: { idempotencyKey: randomUUID(), file: { fileName: "found.jpg" } },
  }));
  await upload(created.file.uploadUrl, marked);
  const order = await ended(created.orderId);
  assert.equal(order.status, "detected");
  assert.equal(order.watermarkText, text);
  const { error } = await api.GET("/api/v2/orders/{orderId}/download", { params: { path: { orderId: created.orderId } } });
  assert.equal(error?.code, "ORDER_TYPE_CANT_DOWNLOAD");
});

await step("orders are listed by filters", async () => {
  const data = dataOf(await api.GET("/api/v2/orders", {
    params: { query: { page: 1, limit: 5, keyword: "generated", status: "complete", type: "antiAi", channel: "api" } },
  }));
  assert.deepEqual(data.orders.map((order) => order.orderId), [orderId]);
  assert.deepEqual(data.pageInfo, { totalItems: 1, totalPages: 1, currentPage: 1, itemsPerPage: 5 });
  const own = { metadata: { "customer no.": "47 & 11" } };
  const found = dataOf(await api.GET("/api/v2/orders", { params: { query: own } }));
  assert.deepEqual(found.orders.map((order) => [order.orderId, order.metadata]), [[orderId, own.metadata]]);
  const all = dataOf(await api.GET("/api/v2/orders", { params: { query: { limit: -1 } } }));
  assert.equal(all.orders.length, 4);
});

await step("webhooks are created, listed, read, updated, tested and deleted", async () => {
  const received: { body: string; headers: Record<string, string> }[] = [];
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => (body += part)).on("end", () => {
      received.push({ body, headers: request.headers as Record<string, string> });
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await new Promise((done) => receiver.once("listening", done));
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  try {
    const created = dataOf(await api.POST("/api/v2/orders/webhooks", { body: { url, name: "generated" } }));
    assert.equal(typeof created.id, "number");
    const params = { path: { webhookId: created.id } };
    const list = dataOf(await api.GET("/api/v2/orders/webhooks", { params: { query: { keyword: "generated" } } }));
    assert.deepEqual(list.webhooks.map((webhook) => webhook.id), [created.id]);
    const changed = dataOf(await api.PUT("/api/v2/orders/webhooks/{webhookId}", { params, body: { name: "renamed" } }));
    assert.deepEqual([changed.id, changed.name, changed.url, changed.isActive], [created.id, "renamed", url, true]);
    assert.equal(dataOf(await api.GET("/api/v2/orders/webhooks/{webhookId}", { params })).name, "renamed");
    const event = dataOf(await api.POST("/api/v2/orders/webhooks/{webhookId}/test", { params }));
    for (const end = Date.now() + 90_000; received.length === 0 && Date.now() < end; ) await new Promise((done) => setTimeout(done, 100));
    const delivery = received[0];
    assert.ok(delivery, "the event did not come");
    const notice = new Webhook(created.secret).verify(delivery.body, delivery.headers) as Schemas["TestNotice"];
    assert.equal(notice.eventId, event.eventId);
    assert.equal(notice.data.webhookId, created.id);
    const events = dataOf(await api.GET("/api/v2/orders/webhooks/{webhookId}/events", { params }));
    assert.deepEqual(events.events.map((one) => one.eventType), ["webhook.test"]);
    const rotated = dataOf(await api.POST("/api/v2/orders/webhooks/{webhookId}/rotate-secret", { params }));
    assert.notEqual(rotated.secret, created.secret);
    const deleted = dataOf(await api.DELETE("/api/v2/orders/webhooks/{webhookId}", { params }));
    assert.deepEqual(deleted, { id: created.id, deleted: true });
    const { error } = await api.GET("/api/v2/orders/webhooks/{webhookId}", { params });
    assert.equal(error?.code, "WEBHOOK_NOT_FOUND");
  } finally {
    receiver.close();
  }
});

await step("statistics are read", async () => {
  const recent = dataOf(await api.GET("/api/v2/orders/stats/recent", {}));
  assert.equal(recent.dailyStats.length, 7);
  assert.equal(recent.dailyStats.reduce((sum, day) => sum + day.usageCount, 0), 3);
  assert.equal(recent.domain[0], 0);
  assert.equal(recent.ticks.at(-1), recent.domain[1]);
});

await step("errors have one shape", async () => {
  const keyless = await stranger.GET("/api/v2/orders", {});
  assert.equal(keyless.response.status, 401);
  assert.equal(keyless.error?.code, "AUTH_NOT_AUTHENTICATED");
  const missing = await api.GET("/api/v2/orders/{orderId}", { params: { path: { orderId: "1" } } });
  assert.equal(missing.response.status, 404);
  assert.equal(missing.error?.code, "ORDER_NOT_FOUND");
  assert.equal(missing.error.requestId, missing.response.headers.get("X-Request-Id"));
  const bad = await api.POST("/api/v2/orders/anti-ai", { body: { idempotencyKey: "", files: [{ fileName: "a.txt" }] } });
  assert.equal(bad.response.status, 400);
  assert.equal(bad.error?.code, "VALIDATION_FAILED");
  assert.deepEqual(bad.error.details?.map((detail) => detail.field).sort(), ["files[0].fileName", "idempotencyKey"]);
  const problem = await api.GET("/api/v2/orders/{orderId}", {
    params: { path: { orderId: "1" } },
    headers: { Accept: "application/problem+json" },
  });
  assert.equal(problem.response.headers.get("Content-Type")?.split(";")[0], "application/problem+json");
  assert.equal(problem.error?.code, "ORDER_NOT_FOUND");
  assert.equal((problem.error as Schemas["Problem"]).status, 404);
});
