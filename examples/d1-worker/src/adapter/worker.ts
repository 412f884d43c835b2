// The Worker of the adapter: a WebSocket that carries requests of the oracle and their responses.
//
// The socket keeps one request's context alive, in which callers can be held from message to message.

import { Stage } from "./stage";
import type { Env } from "./stage";

export default {
  fetch(_request: Request, env: Env): Response {
    const [theirs, ours] = Object.values(new WebSocketPair()) as [WebSocket, WebSocket];
    const stage = new Stage(env);
    let before = Promise.resolve();
    ours.accept();
    ours.addEventListener("message", ({ data }) => {
      const { id, ...request } = JSON.parse(data as string);
      before = before.then(async () => {
        ours.send(JSON.stringify({ id, ...(await stage.respond(request)) }));
      });
    });
    return new Response(null, { status: 101, webSocket: theirs });
  },
};
