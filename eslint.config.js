// Lint rules for what the compiler does not check. All violations are errors.
import tseslint from 'typescript-eslint'
import { rulesOfHooks } from './console/eslint-hooks.js'

export default tseslint.config(
  { ignores: ['dist/', 'dist-package/', 'node_modules/', 'data/', 'test/engines/*/node_modules/'] },
  {
    files: ['**/*.ts', '**/*.tsx'],
    extends: [tseslint.configs.base],
    // Do not use projectService. It opens each file anew, and its heap outgrows the 2 GB that Node allows on a machine
    // of 8 GB.
    languageOptions: {
      parserOptions: { project: ['tsconfig.json', 'console/tsconfig.json'], tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // node:test awaits these promises itself.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'describe', 'suite', 'it'] },
          ],
        },
      ],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/only-throw-error': 'error',
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true } }],
      eqeqeq: 'error',
      'prefer-const': 'error',
      'no-constant-condition': ['error', { checkLoops: false }],
    },
  },
  {
    // Type assertions (`as`) are allowed only in the two files that create branded types, and in tests.
    files: ['src/**/*.ts', 'console/src/**/*.{ts,tsx}'],
    ignores: ['src/ids.ts', 'src/drivers/confined.ts', '**/*.test.ts'],
    rules: {
      '@typescript-eslint/consistent-type-assertions': ['error', { assertionStyle: 'never' }],
    },
  },
  {
    // The console may import types of the service, never its code.
    files: ['console/src/**/*.{ts,tsx}'],
    plugins: { console: { rules: { hooks: rulesOfHooks } } },
    rules: {
      'console/hooks': 'error',
      '@typescript-eslint/only-throw-error': [
        'error',
        { allow: [{ from: 'package', package: '@tanstack/router-core', name: ['Redirect', 'NotFoundError'] }] },
      ],
      '@typescript-eslint/no-restricted-imports': [
        'error',
        { patterns: [{ group: ['**/src/*', 'zod'], allowTypeImports: true, message: 'Import types only.' }] },
      ],
      // An event handler may return a promise: useAction shows its failures.
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
    },
  },
  {
    files: ['src/**/*.ts'],
    ignores: ['src/drivers/*/guard/confine.ts', 'src/drivers/confined.ts', '**/*.test.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { group: ['**/confined.ts'], importNames: ['seal'], message: 'Only confine.ts may seal a query.' },
          ],
        },
      ],
    },
  },
)
