// The package is of ES modules; this tells Node that what lies in dist/cjs is not.
import { writeFileSync } from "node:fs";

writeFileSync(new URL("../dist/cjs/package.json", import.meta.url), '{ "type": "commonjs" }\n');
