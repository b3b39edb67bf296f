//   node node.mjs http://127.0.0.1:8080 "the question"
import { converse } from "./client.mjs";

console.log(JSON.stringify(await converse(...process.argv.slice(2))));
