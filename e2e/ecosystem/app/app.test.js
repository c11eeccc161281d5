// For Jest: Babel turns the imports into CommonJS. The test outside looks at the output.
import { found } from "./server.js";

test("importing the package does no harm", () => {
  process.stderr.write(`found ${JSON.stringify(found)}\n`);
});
