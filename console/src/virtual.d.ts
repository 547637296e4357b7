declare module 'virtual:routes' {
  export const routes: Readonly<Record<string, readonly [method: string, path: string]>>
}
