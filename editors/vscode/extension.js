'use strict';
// Starts `gradscope dap`, which does all the rest.

const fs = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

/** What starts the adapter: the setting, with the folder that is debugged in it. */
function executable(session) {
  const folder = session.workspaceFolder;
  const command = vscode.workspace.getConfiguration('gradscope', folder).get('command');
  const root = folder === undefined ? '' : folder.uri.fsPath;
  const [name, ...args] = command.map((part) => part.replaceAll('${workspaceFolder}', root));
  if (!isThere(name)) {
    throw new Error(
      `${name} was not found. Set gradscope.command to what starts gradscope in the environment of your program, ` +
        'such as ["${workspaceFolder}/.venv/bin/gradscope"].',
    );
  }
  return new vscode.DebugAdapterExecutable(name, [...args, 'dap']);
}

/** Whether a program is where the editor looks for it: the editor starts no session without one, and says nothing. */
function isThere(name) {
  const folders = path.basename(name) === name ? (process.env.PATH ?? '').split(path.delimiter) : [''];
  const endings = process.platform === 'win32' ? ['', ...(process.env.PATHEXT ?? '').split(';')] : [''];
  return folders.some((folder) => endings.some((ending) => fs.existsSync(path.join(folder, name + ending))));
}

/** Where a configuration leaves something out: it runs in its folder, and F5 without any takes the file at hand. */
function resolved(folder, configuration) {
  if (configuration.type || configuration.request || configuration.name) {
    const runs = configuration.request === 'launch' && folder !== undefined;
    return runs ? { cwd: folder.uri.fsPath, ...configuration } : configuration;
  }
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || editor.document.languageId !== 'python') {
    return undefined;
  }
  const cwd = folder === undefined ? {} : { cwd: folder.uri.fsPath };
  return { type: 'gradscope', request: 'launch', name: 'Backward', program: '${file}', stopOnEntry: true, ...cwd };
}

exports.activate = function activate(context) {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory('gradscope', { createDebugAdapterDescriptor: executable }),
    vscode.debug.registerDebugConfigurationProvider('gradscope', { resolveDebugConfiguration: resolved }),
  );
};
