// An echo agent on @a2a-js/sdk's own server parts, tasks in memory:
// JSON-RPC at /rpc, HTTP+JSON at /rest. It is copied beside its node_modules to run.

import { randomUUID } from "node:crypto";
import { TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler, restHandler } from "@a2a-js/sdk/server/express";
import express from "express";

const status = (state) => ({ state, message: undefined, timestamp: new Date().toISOString() });

/** One task, one artifact with the caller's text, completed; the text `hold` is kept working. */
class Echo {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const text = userMessage.parts.map((part) => part.content?.value ?? "").join("");
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_SUBMITTED),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
    if (text === "hold") {
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId,
          status: status(TaskState.TASK_STATE_WORKING),
          metadata: undefined,
        }),
      );
      await new Promise((resolve) => setTimeout(resolve, 3_600_000));
    }
    const part = { content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" };
    const artifact = {
      artifactId: randomUUID(),
      name: "echo",
      description: "",
      parts: [part],
      metadata: undefined,
      extensions: [],
    };
    bus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact,
        append: false,
        lastChunk: true,
        metadata: undefined,
      }),
    );
    bus.publish(
      AgentEvent.statusUpdate({
        taskId,
        contextId,
        status: status(TaskState.TASK_STATE_COMPLETED),
        metadata: undefined,
      }),
    );
    bus.finished();
  }

  async cancelTask() {
    throw new Error("the benchmark cancels nothing");
  }
}

function cardAt(origin) {
  const served = (url, protocolBinding) => ({ url, protocolBinding, tenant: "", protocolVersion: "1.0" });
  return {
    name: "Echo",
    description: "Echoes its text.",
    supportedInterfaces: [served(`${origin}/rpc`, "JSONRPC"), served(`${origin}/rest`, "HTTP+JSON")],
    provider: undefined,
    version: "1.0",
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ["text/plain"],
    defaultOutputModes: ["text/plain"],
    skills: [
      {
        id: "echo",
        name: "Echo",
        description: "Echoes its text.",
        tags: ["echo"],
        examples: [],
        inputModes: [],
        outputModes: [],
        securityRequirements: [],
      },
    ],
    signatures: [],
  };
}

// The card names its own address, so the application is built once the port is known.
const server = express().listen(0, "127.0.0.1", 16384, () => {
  const origin = `http://127.0.0.1:${server.address().port}`;
  const handler = new DefaultRequestHandler(cardAt(origin), new InMemoryTaskStore(), new Echo());
  const served = { requestHandler: handler, userBuilder: UserBuilder.noAuthentication };
  const application = express();
  application.disable("x-powered-by");
  application.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: handler }));
  application.use("/rpc", jsonRpcHandler(served));
  application.use("/rest", restHandler(served));
  server.removeAllListeners("request");
  server.on("request", application);
  console.log(`listening on ${origin}`);
});

process.on("SIGTERM", () => process.exit(0));
