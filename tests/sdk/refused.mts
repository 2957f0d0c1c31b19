// Calls that the types refuse: tsc fails when one of these lines is not an error.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

const api = createClient<paths>();
const files = [{ fileName: "a.jpg" }];

// @ts-expect-error an unknown strength
void api.POST("/api/v2/orders/anti-ai", { body: { idempotencyKey: "1", files, options: { strength: "extreme" } } });
// @ts-expect-error no idempotency key
void api.POST("/api/v2/orders/anti-ai", { body: { files } });
// @ts-expect-error not an order status
void api.GET("/api/v2/orders", { params: { query: { status: "done" } } });
// @ts-expect-error no order id
void api.GET("/api/v2/orders/{orderId}", {});
// @ts-expect-error presigned URLs are not operations
void api.GET("/files/{fileKey}", {});
// @ts-expect-error the text of an extraction may be null
export const found: string = {} as components["schemas"]["OrderDetail"]["watermarkText"];
