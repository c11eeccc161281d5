// As Jest runs it: Babel makes CommonJS of what is imported. The test outside looks at what is printed.
import { found } from "./server.js";

test("importing the package does no harm", () => {
  process.stderr.write(`found ${JSON.stringify(found)}\n`);
});
