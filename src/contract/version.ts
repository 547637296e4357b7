// The same version as in package.json. docs.test.ts checks this.
export const VERSION = '0.1.0'
