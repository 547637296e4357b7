// A lint rule for React's hooks, because no plugin is installed: a hook may be called only at the top level of a
// component or of another hook, and never after an early return.
const HOOK = /^use[A-Z]/
const BRANCHES = new Set([
  'IfStatement',
  'ConditionalExpression',
  'LogicalExpression',
  'ForStatement',
  'ForOfStatement',
  'ForInStatement',
  'WhileStatement',
  'DoWhileStatement',
  'SwitchStatement',
  'TryStatement',
])

const isFunction = ({ type }) => /Function/.test(type)

function nameOf(fn) {
  if (fn.id) return fn.id.name
  return fn.parent.type === 'VariableDeclarator' && fn.parent.id.type === 'Identifier' ? fn.parent.id.name : ''
}

/** Returns the reason why the call is not allowed here, or null. */
function problemOf(call) {
  let child = call
  for (let node = call.parent; node; child = node, node = node.parent) {
    if (isFunction(node)) {
      if (!/^(use)?[A-Z]/.test(nameOf(node))) return 'is called outside of a component or hook'
      const before = node.body.type === 'BlockStatement' ? node.body.body.slice(0, node.body.body.indexOf(child)) : []
      return hasReturn(node.body === child ? earlier(node.body, call) : before)
        ? 'is called after an early return'
        : null
    }
    // The condition itself always runs. A branch may not run.
    const always = node.test === child || node.left === child || node.discriminant === child
    if (BRANCHES.has(node.type) && !always) return 'is called conditionally'
  }
  return 'is called outside of a component or hook'
}

const earlier = (body, call) =>
  body.type === 'BlockStatement' ? body.body.filter((statement) => statement.range[1] <= call.range[0]) : []

function hasReturn(statements) {
  return statements.some((node) => {
    if (node.type === 'ReturnStatement') return true
    if (node.type === 'IfStatement') return hasReturn([node.consequent, node.alternate].filter(Boolean))
    return node.type === 'BlockStatement' && hasReturn(node.body)
  })
}

export const rulesOfHooks = {
  meta: { type: 'problem', schema: [], messages: { wrong: 'The hook {{name}} {{problem}}.' } },
  create: (context) => ({
    CallExpression(node) {
      if (node.callee.type !== 'Identifier' || !HOOK.test(node.callee.name)) return
      const problem = problemOf(node)
      if (problem !== null) context.report({ node, messageId: 'wrong', data: { name: node.callee.name, problem } })
    },
  }),
}
