// The official npm client through every route that it knows, against the fox at $FOX_URL.
import assert from "node:assert/strict";
import OpenAI from "openai";

const model = process.env.FOX_MODEL;
const client = new OpenAI({ baseURL: `${process.env.FOX_URL}/v1`, apiKey: "none", maxRetries: 0 });
const messages = [{ role: "user", content: "Tell me about the sea." }];
const parameters = {
  type: "object",
  properties: { city: { type: "string", maxLength: 20 } },
  required: ["city"],
  additionalProperties: false,
};

const cases = {
  async "models are listed and found"() {
    const names = [];
    for await (const one of client.models.list()) names.push(one.id);
    assert(names.includes(model));
    assert.equal((await client.models.retrieve(model)).id, model);
  },
  async "a chat, whole and streamed"() {
    const asked = { model, messages, temperature: 0, max_tokens: 12 };
    const whole = await client.chat.completions.create(asked);
    const stream = client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } });
    assert.equal(await stream.finalContent(), whole.choices[0].message.content);
    assert.equal((await stream.totalUsage()).completion_tokens, 12);
  },
  async "a forced call"() {
    const tools = [{ type: "function", function: { name: "get_weather", parameters } }];
    const asked = { model, messages, tools, tool_choice: "required", max_tokens: 60 };
    const [call] = (await client.chat.completions.create(asked)).choices[0].message.tool_calls;
    assert.deepEqual(Object.keys(JSON.parse(call.function.arguments)), ["city"]);
  },
  async "a completion, whole and streamed"() {
    const asked = { model, prompt: "The capital of France is", temperature: 0, max_tokens: 8 };
    const whole = (await client.completions.create(asked)).choices[0].text;
    let text = "";
    for await (const chunk of await client.completions.create({ ...asked, stream: true })) {
      text += chunk.choices[0].text;
    }
    assert.equal(text, whole);
  },
  async "embeddings"() {
    const { data } = await client.embeddings.create({ model, input: ["a cat", "a dog"] });
    assert.equal(data.length, 2);
    assert(Math.abs(data[0].embedding.reduce((sum, x) => sum + x * x, 0) - 1) < 1e-3);
  },
  async "a response, whole, streamed, kept and dropped"() {
    const asked = { model, input: "Tell me about the sea.", temperature: 0, max_output_tokens: 12 };
    const whole = await client.responses.create(asked);
    let text = "";
    for await (const event of await client.responses.create({ ...asked, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    assert.equal(text, whole.output_text);
    assert.equal((await client.responses.retrieve(whole.id)).output_text, text);
    await client.responses.create({ ...asked, input: "And?", previous_response_id: whole.id });
    await client.responses.delete(whole.id);
    await assert.rejects(client.responses.retrieve(whole.id), OpenAI.NotFoundError);
  },
  async "what is wrong is refused"() {
    const wrong = client.chat.completions.create({ model, messages: [] });
    await assert.rejects(wrong, (error) => error.status === 400 && error.param === "messages");
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log(`  passed: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`  FAILED: ${name}: ${error}`);
  }
}
process.exit(failed ? 1 : 0);
