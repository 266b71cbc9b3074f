'use strict';
// The adapter under the client that Microsoft tests adapters of VS Code with.

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { after, afterEach, before, beforeEach, test } = require('node:test');

const { DebugClient } = require('@vscode/debugadapter-testsupport');

const SCRIPT = `import gradscope as gs
x = gs.ones(3, requires_grad=True)
y = x * 2
z = y.sqrt() * x
print("forward is done")
z.sum().backward()
`;

let client, folder, program;

before(() => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'gradscope-')));
  program = path.join(folder, 'train.py');
  fs.writeFileSync(program, SCRIPT);
});
after(() => fs.rmSync(folder, { recursive: true }));

beforeEach(async () => {
  client = new DebugClient(process.env.GRADSCOPE ?? 'gradscope', 'dap', 'gradscope');
  client.defaultTimeout = 60_000;
  await client.start();
});
afterEach(() => client.stop());

test('a breakpoint on a line stops before the node that it has made', () =>
  client.hitBreakpoint({ program }, { path: program, line: 3 }));

test('the program stops on entry, at the line of the first node', () =>
  Promise.all([
    client.configurationSequence(),
    client.launch({ program, stopOnEntry: true }),
    client.assertStoppedLocation('entry', { path: program, line: 6 }),
  ]));

test('the program runs to its end, and its output arrives', () =>
  Promise.all([
    client.configurationSequence(),
    client.launch({ program }),
    client.assertOutput('stdout', 'forward is done\n'),
    client.waitForEvent('exited').then((event) => assert.strictEqual(event.body.exitCode, 0)),
    client.waitForEvent('terminated'),
  ]));

test('a NaN stops as an exception, and the backward goes back to the loss', async () => {
  const bad = path.join(folder, 'bad.py');
  fs.writeFileSync(bad, SCRIPT.replace('gs.ones', 'gs.zeros'));
  const stopped = client.assertStoppedLocation('exception', { path: bad, line: 4 });
  await Promise.all([
    client.waitForEvent('initialized').then(async () => {
      await client.setExceptionBreakpointsRequest({ filters: ['nan'] });
      await client.configurationDoneRequest();
    }),
    client.launch({ program: bad }),
    stopped,
  ]);
  const info = await client.exceptionInfoRequest({ threadId: 1 });
  assert.strictEqual(info.body.exceptionId, 'nan');
  const { stackFrames } = (await client.stackTraceRequest({ threadId: 1 })).body;
  assert.deepStrictEqual(stackFrames.slice(0, 3).map((frame) => frame.name), [
    '2 SqrtBackward0', '1 MulBackward0', '0 SumBackward0',
  ]);
  const { scopes } = (await client.scopesRequest({ frameId: stackFrames[0].id })).body;
  const { variablesReference } = scopes.find((scope) => scope.name === 'Gradients out');
  const { variables } = (await client.variablesRequest({ variablesReference })).body;
  const elements = await client.variablesRequest({ variablesReference: variables[0].variablesReference });
  assert.deepStrictEqual(elements.body.variables.map((one) => one.value), ['nan', 'nan', 'nan']);
  for (const verb of ['stepBack', 'reverseContinue']) {
    const [event] = await Promise.all([client.waitForEvent('stopped'), client.customRequest(verb, { threadId: 1 })]);
    assert.strictEqual(event.body.threadId, 1);
  }
});

test('a write into a saved tensor is a data breakpoint', async () => {
  const writes = path.join(folder, 'writes.py');
  fs.writeFileSync(writes, SCRIPT.replace('z.sum().backward()', [
    'loss = z.sum()', 'loss.backward(retain_graph=True)', 'with gs.no_grad():', '    x.add_(1)', '',
  ].join('\n')));
  await client.hitBreakpoint({ program: writes }, { path: writes, line: 4 });
  const [frame] = (await client.stackTraceRequest({ threadId: 1 })).body.stackFrames;
  const { scopes } = (await client.scopesRequest({ frameId: frame.id })).body;
  const { variablesReference } = scopes.find((scope) => scope.name === 'Saved tensors');
  const { variables } = (await client.variablesRequest({ variablesReference })).body;
  assert.deepStrictEqual(variables.map((one) => one.name).sort(), ['other', 'self']);
  const info = await client.dataBreakpointInfoRequest({ variablesReference, name: 'other' });
  const { dataId } = info.body;
  const set = await client.setDataBreakpointsRequest({ breakpoints: [{ dataId }] });
  assert.ok(set.body.breakpoints[0].verified);
  await client.setBreakpointsRequest({ source: { path: writes }, breakpoints: [] });
  await Promise.all([
    client.assertStoppedLocation('data breakpoint', { path: writes, line: 9 }),
    client.continueRequest({ threadId: 1 }),
  ]);
});

test('a program can be started again', async () => {
  await client.hitBreakpoint({ program }, { path: program, line: 3 });
  await Promise.all([
    client.assertStoppedLocation('breakpoint', { path: program, line: 3 }),
    client.restartRequest({}),
  ]);
});

test('each rank is a thread, and all step together', async () => {
  const stops = [];
  const all = (count) => new Promise((resolve) => {
    client.on('stopped', function take(event) {
      if (stops.push(event.body) === count) {
        client.off('stopped', take);
        resolve(stops.splice(0));
      }
    });
  });
  let stopped = all(2);
  await Promise.all([
    client.configurationSequence(),
    client.launch({ program, nprocPerNode: 2, stopOnEntry: true }),
    stopped,
  ]);
  const { threads } = (await client.threadsRequest()).body;
  assert.deepStrictEqual(threads.map((one) => one.name), ['rank 0: MainThread', 'rank 1: MainThread']);
  stopped = all(2);
  await client.nextRequest({ threadId: threads[1].id });
  const found = await stopped;
  assert.deepStrictEqual(found.map((one) => one.threadId).sort(), threads.map((one) => one.id).sort());
  for (const { id } of threads) {
    const [frame] = (await client.stackTraceRequest({ threadId: id })).body.stackFrames;
    assert.strictEqual(frame.name, '1 MulBackward0');
  }
  await Promise.all([
    client.waitForEvent('terminated'),
    client.continueRequest({ threadId: threads[0].id }),
  ]);
});
