// A stream of server-sent events as text (HTML Living Standard, 9.2), read by fetch: unlike EventSource it shows the
// comments that the daemon sends when nothing happens, and it can carry a token.

/** Takes text in pieces and calls f({event, id, data}) for each message. */
export class Parser {
  constructor(f) {
    this.f = f;
    this.rest = "";
    this.reset_();
  }

  reset_() {
    this.event = "message";
    this.id = undefined;
    this.data = [];
  }

  push(text) {
    this.rest += text;
    let start = 0;
    for (let end = this.rest.indexOf("\n"); end >= 0; end = this.rest.indexOf("\n", start)) {
      this.line_(this.rest.slice(start, this.rest[end - 1] === "\r" ? end - 1 : end));
      start = end + 1;
    }
    this.rest = this.rest.slice(start);
  }

  line_(line) {
    if (line === "") {
      const message = { event: this.event, id: this.id, data: this.data.join("\n") };
      const hasData = this.data.length > 0;
      this.reset_();
      if (hasData) this.f(message);
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // A comment.
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.data.push(value);
    else if (field === "event") this.event = value;
    else if (field === "id") this.id = value;
  }
}

/** Reads a response to its end. Calls heard() for every piece, and f(message) for each message. */
export const read = async (response, f, heard = () => {}) => {
  const parser = new Parser(f);
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    parser.push(decoder.decode(value, { stream: true }));
  }
};
