// Generates the types that openapi-fetch uses, with openapi-typescript.
// The environment variables INPUT and OUTPUT name the document and the file.
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const BLOB = ts.factory.createTypeReferenceNode('Blob');

const types = await openapiTS(JSON.parse(await readFile(process.env.INPUT, 'utf8')), {
  // A field with a default value is optional in a request.
  defaultNonNullable: false,
  // A body of bytes is a Blob, for example a file that is read while it is sent.
  transform: (schema) => (schema.format === 'binary' ? BLOB : undefined),
});
await writeFile(process.env.OUTPUT, astToString(types));
