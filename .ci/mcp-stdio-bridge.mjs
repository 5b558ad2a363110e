// Serves an MCP server that communicates over standard input and output as Streamable HTTP, so that suites that only know HTTP can test
// it. Each session has a process of its own; requests without a session share one.
//
//   node .ci/mcp-stdio-bridge.mjs 127.0.0.1:8080 toolwit mcp --plugins plugins
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";

const [address, ...command] = process.argv.slice(2);
const [host, port] = address.split(":");
const sessions = new Map();

class Server {
  constructor() {
    this.child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    // The open responses, by the ids that the process sees. The ids of clients that share the process may be equal.
    this.requests = new Map();
    this.nextId = 1;
    this.waiting = [];
    this.stream = null;
    createInterface({ input: this.child.stdout }).on("line", (line) => this.receive(JSON.parse(line)));
    this.child.on("exit", () => this.requests.forEach(({ response }) => response.end()));
  }

  send(message) {
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  // Sends a request of a client. Its response is a stream of events that ends with the result.
  request(message, response) {
    const id = this.nextId++;
    this.requests.set(id, { id: message.id, response });
    response.writeHead(200, { "content-type": "text/event-stream", ...this.headers });
    this.send({ ...message, id });
  }

  receive(message) {
    if (message.method === undefined && this.requests.has(message.id)) {
      const { id, response } = this.requests.get(message.id);
      this.requests.delete(message.id);
      response.end(event({ ...message, id }));
      return;
    }
    const open = [...this.requests.values()].pop();
    const isAboutLists = message.method?.endsWith("list_changed") || message.method === "notifications/resources/updated";
    const stream = isAboutLists ? this.stream : (open?.response ?? this.stream);
    if (stream) {
      stream.write(event(message));
    } else {
      this.waiting.push(message);
    }
  }

  // Opens the stream of messages that belong to no request.
  listen(response) {
    this.stream = response;
    response.writeHead(200, { "content-type": "text/event-stream", ...this.headers });
    response.flushHeaders();
    this.waiting.splice(0).forEach((message) => response.write(event(message)));
    response.on("close", () => {
      this.stream = null;
    });
  }
}

function event(message) {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

function refuse(response, status, text) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32600, message: text } }));
}

// A page of another site must not reach a server of this machine.
function isLocal(request) {
  const names = [request.headers.host, request.headers.origin].filter(Boolean);
  return names.every((name) => /^(https?:\/\/)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(name));
}

function serverOf(request, message) {
  const id = request.headers["mcp-session-id"];
  if (message?.method === "initialize") {
    const server = new Server();
    const newId = randomUUID();
    server.headers = { "mcp-session-id": newId };
    sessions.set(newId, server);
    return server;
  }
  if (id === undefined && !sessions.has("")) {
    sessions.set("", new Server());
  }
  return sessions.get(id ?? "");
}

createServer(async (request, response) => {
  if (!isLocal(request)) {
    return refuse(response, 403, "the host or the origin is not allowed");
  }
  let body = "";
  for await (const piece of request) {
    body += piece;
  }
  let message;
  try {
    message = body === "" ? undefined : JSON.parse(body);
  } catch {
    return refuse(response, 400, "the body is not JSON");
  }
  const server = serverOf(request, message);
  if (!server) {
    return refuse(response, 404, "there is no such session");
  }
  if (request.method === "GET") {
    return server.listen(response);
  }
  if (request.method === "DELETE") {
    sessions.delete(request.headers["mcp-session-id"]);
    server.child.kill();
    return response.writeHead(200).end();
  }
  if (message?.method !== undefined && message.id !== undefined) {
    return server.request(message, response);
  }
  server.send(message);
  return response.writeHead(202).end();
}).listen(Number(port), host);

process.on("SIGTERM", () => {
  sessions.forEach((server) => server.child.kill());
  process.exit(0);
});
