// The type of the module that vite.config.ts generates: method and path of each operation that needs an access token.
declare module 'virtual:routes' {
  export const routes: Readonly<Record<string, readonly [method: string, path: string]>>
}
