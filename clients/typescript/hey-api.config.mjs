// Configuration of @hey-api/openapi-ts. The environment variables INPUT and OUTPUT name the document and the folder.
import { defineConfig } from '@hey-api/openapi-ts';

export default defineConfig({
  input: process.env.INPUT,
  output: process.env.OUTPUT,
  plugins: ['@hey-api/client-fetch', '@hey-api/sdk', '@hey-api/typescript'],
});
