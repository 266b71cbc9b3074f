'use strict';
// The extension itself, under a stand-in of the editor.

const assert = require('node:assert');
const fs = require('node:fs');
const Module = require('node:module');
const os = require('node:os');
const path = require('node:path');
const { after, before, test } = require('node:test');

let command, factory, folder, provider;

const editor = {
  workspace: { getConfiguration: () => ({ get: () => command }) },
  window: { activeTextEditor: { document: { languageId: 'python' } } },
  debug: {
    registerDebugAdapterDescriptorFactory: (_, given) => (factory = given),
    registerDebugConfigurationProvider: (_, given) => (provider = given),
  },
  DebugAdapterExecutable: class {
    constructor(name, args) {
      Object.assign(this, { name, args });
    }
  },
};

before(() => {
  const load = Module._load;
  Module._load = (name, ...rest) => (name === 'vscode' ? editor : load(name, ...rest));
  require('../extension.js').activate({ subscriptions: [] });
  Module._load = load;
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'gradscope-')));
  fs.writeFileSync(path.join(folder, 'gradscope'), '', { mode: 0o755 });
});
after(() => fs.rmSync(folder, { recursive: true }));

const started = () => factory.createDebugAdapterDescriptor({ workspaceFolder: { uri: { fsPath: folder } } });

test('what the setting names in the folder of the program is started', () => {
  command = ['${workspaceFolder}/gradscope', '-v'];
  assert.deepStrictEqual({ ...started() }, { name: `${folder}/gradscope`, args: ['-v', 'dap'] });
});

test('gradscope is looked for where the editor looks for programs', () => {
  command = ['gradscope'];
  process.env.PATH = [os.devNull, folder].join(path.delimiter);
  assert.strictEqual(started().name, 'gradscope');
});

test('what is not there is said, with the setting that names it', () => {
  process.env.PATH = os.devNull;
  for (const name of ['gradscope', '${workspaceFolder}/.venv/bin/gradscope']) {
    command = [name];
    assert.throws(started, /gradscope was not found\. Set gradscope\.command to what starts gradscope/);
  }
});

test('a program runs in its folder, unless the configuration says where', () => {
  const workspace = { uri: { fsPath: folder } };
  const cwd = (of, configuration) => provider.resolveDebugConfiguration(of, configuration).cwd;
  const launch = { type: 'gradscope', request: 'launch', name: 'Backward' };
  assert.deepStrictEqual(
    [launch, { ...launch, cwd: '/elsewhere' }, { ...launch, request: 'attach' }, {}].map((one) => cwd(workspace, one)),
    [folder, '/elsewhere', undefined, folder],
  );
  assert.deepStrictEqual([launch, {}].map((one) => cwd(undefined, one)), [undefined, undefined]);
});
