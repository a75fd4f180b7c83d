/** openapi-typescript needs the JavaScript API of TypeScript 5, which is installed beside TypeScript 7 as typescript-api. */
import { register } from 'node:module';

const hook = `export const resolve = (name, context, next) => next(name === 'typescript' ? 'typescript-api' : name, context);`;
register(`data:text/javascript,${encodeURIComponent(hook)}`);
