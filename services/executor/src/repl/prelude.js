// What the code of a model finds beside the language. The only way out is `native`, which nothing else can reach.
(native => {
  "use strict";
  const LONGEST_PROMPT = 10000;
  const LONGEST_OUTPUT = 1 << 20;
  const { stringify, parse } = JSON;
  const { defineProperty, freeze } = Object;
  const text = value => String(value).toWellFormed();

  const show = value => {
    if (typeof value !== "object" || value === null) return text(value);
    try {
      if (value instanceof Error) return text(`${value.name}: ${value.message}`);
      return text(stringify(value) ?? value);
    } catch {
      return "[something that cannot be shown]";
    }
  };

  const print = stream => (...values) => {
    native.print(stream, values.map(show).join(" ").slice(0, LONGEST_OUTPUT).toWellFormed() + "\n");
  };
  const [out, err] = [print("out"), print("err")];

  const llm_query = async (prompt, context) => {
    if (typeof prompt !== "string") throw new TypeError("llm_query: the prompt must be a string");
    if (prompt.length > LONGEST_PROMPT) {
      throw new RangeError(
        `llm_query: the prompt has ${prompt.length} characters, more than ${LONGEST_PROMPT}: pass the text as context`);
    }
    const given = context === undefined || context === null ? undefined : show(context);
    return native.call("llm_query", stringify({ prompt: prompt.toWellFormed() }), given);
  };

  const exec = async (command, timeout) => {
    if (typeof command !== "string") throw new TypeError("exec: the command must be a string");
    if (timeout !== undefined && !(typeof timeout === "number" && timeout > 0)) {
      throw new TypeError("exec: the timeout must be a number of seconds");
    }
    return native.call("exec", stringify({ command: command.toWellFormed(), timeout }), undefined);
  };

  const globals = {
    console: freeze({ log: out, info: out, debug: out, warn: err, error: err }),
    print: out,
    scope: {},
    llm_query,
    exec,
    FINAL: value => native.final(show(value)),
    FINAL_VAR: name => native.final(show(globalThis.scope[name])),
  };
  for (const [name, value] of Object.entries(globals)) {
    defineProperty(globalThis, name, { value, writable: name === "scope", enumerable: true });
  }

  const AsyncFunction = (async () => {}).constructor;
  return {
    start: code => new AsyncFunction(code)(),
    parse: json => parse(json),
    refuse: (reject, why) => reject(new Error(why)),
    describe: error => {
      try {
        if (error === null || error === undefined) return "out of memory";
        return show(error);
      } catch {
        return "an error that cannot be shown";
      }
    },
  };
})
