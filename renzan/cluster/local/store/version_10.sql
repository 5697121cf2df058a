CREATE TABLE attempts (job INTEGER NOT NULL, number INTEGER NOT NULL, placement TEXT NOT NULL, target TEXT NOT NULL, started INTEGER NOT NULL, backfilled INTEGER NOT NULL, stop_reason TEXT NOT NULL, stopping_for INTEGER NOT NULL, ended INTEGER, exit_code INTEGER, ended_by TEXT NOT NULL, message TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job, number), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,0,'[{"node":"local-0","workers":1,"devices":[[0]]}]','[]',1796024269131,0,'',0,1796024269218,0,'itself','all workers ended with exit status 0','09aa3014307789a34e90767a2f115102');
INSERT INTO "attempts" VALUES(2,0,'[{"node":"local-0","workers":1,"devices":[[0]]}]','[]',1796024269271,0,'requested by root',0,1796024271570,143,'request','it was stopped on request; worker 0 on local-0 was killed by signal 15 (Terminated)','9c94b1081d40d8d96d53e902ae40b752');
INSERT INTO "attempts" VALUES(2,1,'[{"node":"local-0","workers":1,"devices":[[0]]}]','[]',1796024271593,0,'requested by root',0,1796024273848,143,'request','it was stopped on request; worker 0 on local-0 was killed by signal 15 (Terminated)','15a6fb9ba50474b032cc76983c89d903');
INSERT INTO "attempts" VALUES(3,0,'[{"node":"local-0","workers":1,"devices":[[1]]}]','[]',1796024269413,0,'',0,NULL,NULL,'','','1b198c33d8fc5413f5e57111cf078a11');
CREATE TABLE closures (node TEXT NOT NULL, by TEXT NOT NULL, reason TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (node)) STRICT, WITHOUT ROWID;
CREATE TABLE collections (job INTEGER NOT NULL, becomes TEXT NOT NULL, ended INTEGER NOT NULL, text TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
CREATE TABLE early_failures (job INTEGER NOT NULL, node TEXT NOT NULL, user TEXT NOT NULL, time INTEGER NOT NULL, counts INTEGER NOT NULL, ran_elsewhere INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job, node)) STRICT, WITHOUT ROWID;
CREATE TABLE ended_run_times (number INTEGER NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL, ran_ms INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (number)) STRICT, WITHOUT ROWID;
INSERT INTO "ended_run_times" VALUES(1,'default','root','true',1,87,'8e70dfda4dbc0c89a4607ac4aaf21312');
CREATE TABLE ended_sums (queue TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, jobs INTEGER NOT NULL, gpu_seconds REAL NOT NULL, cost REAL NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (queue, user, state)) STRICT, WITHOUT ROWID;
INSERT INTO "ended_sums" VALUES('default','root','done',1,0.087,0.0,'21737fc48728c277120ba73c7916712d');
CREATE TABLE events (job INTEGER NOT NULL, number INTEGER NOT NULL, time INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job, number), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
INSERT INTO "events" VALUES(1,0,1796024269127,'submitted','by root','df0f700a867a223d93629b117412504a');
INSERT INTO "events" VALUES(1,1,1796024269131,'started','attempt 0 on local-0 (1 worker)','1a1ff0ff3a3fb0504f47c09f1da1427a');
INSERT INTO "events" VALUES(1,2,1796024269242,'done','done','8bf1faddcd5b7ca55813fa6c43b2a2cc');
INSERT INTO "events" VALUES(2,0,1796024269267,'submitted','by root','d35e48f550efe83a9f34a96eebe33aef');
INSERT INTO "events" VALUES(2,1,1796024269271,'started','attempt 0 on local-0 (1 worker)','22ee1d0afb28aac39c7a19c0635226c3');
INSERT INTO "events" VALUES(2,2,1796024271547,'stopping','requested by root','7e60d423f5610d75495f211b77d71a70');
INSERT INTO "events" VALUES(2,3,1796024271592,'pending','back to the queue (requested by root)','3c78917697e92d21b25e9d6f762cf8b4');
INSERT INTO "events" VALUES(2,4,1796024271593,'started','attempt 1 on local-0 (1 worker)','394e04ed5df5a91e504a0f2a5415aba9');
INSERT INTO "events" VALUES(2,5,1796024272709,'held','by root','e6f72b70a5e20b34ce1b09d04ee2519d');
INSERT INTO "events" VALUES(2,6,1796024273838,'stopping','requested by root','f478502577263c6ff8fd98812daebcb3');
INSERT INTO "events" VALUES(2,7,1796024273864,'pending','back to the queue (requested by root)','9cd57064f2108d44844891f564fe1164');
INSERT INTO "events" VALUES(3,0,1796024269406,'submitted','by root','0192ce165f1c32e8ad1a1f74c3affad9');
INSERT INTO "events" VALUES(3,1,1796024269413,'started','attempt 0 on local-0 (1 worker)','9e7df19dc719a7ab9ac5839d79b925f1');
CREATE TABLE facts (name TEXT NOT NULL, value INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (name)) STRICT, WITHOUT ROWID;
INSERT INTO "facts" VALUES('accounted_until',1796024273848,'7e26d4d0259749a03f31ca448df9ba0e');
INSERT INTO "facts" VALUES('last_job',3,'80afd96ef3be56c10896d8f6ee29def3');
INSERT INTO "facts" VALUES('schema_version',10,'6bdbbf3c4a2d980e9eff6a597acbff34');
INSERT INTO "facts" VALUES('unfinished_jobs',2,'84e89300690288a3eca29ecf756d8f36');
CREATE TABLE holds (job INTEGER NOT NULL, by TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
INSERT INTO "holds" VALUES(2,'root','de63d91b703e0d4f361fa32ba4e43c4a');
CREATE TABLE jobs (id INTEGER NOT NULL, name TEXT NOT NULL, queue TEXT NOT NULL, spec TEXT NOT NULL, source TEXT NOT NULL, submit_dir TEXT NOT NULL, user TEXT NOT NULL, uid INTEGER NOT NULL, gid INTEGER NOT NULL, priority INTEGER NOT NULL, min_workers INTEGER NOT NULL, max_workers INTEGER NOT NULL, cpu_millis INTEGER NOT NULL, memory_mib INTEGER NOT NULL, gpus INTEGER NOT NULL, state TEXT NOT NULL, submitted INTEGER NOT NULL, eligible_at INTEGER NOT NULL, attempts INTEGER NOT NULL, failures INTEGER NOT NULL, preemptions INTEGER NOT NULL, requeues INTEGER NOT NULL, run_ms INTEGER NOT NULL, last_resize INTEGER NOT NULL, cancel_requested INTEGER NOT NULL, started INTEGER, ended INTEGER, exit_code INTEGER, message TEXT NOT NULL, manifest TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (id)) STRICT, WITHOUT ROWID;
INSERT INTO "jobs" VALUES(1,'true','default','name: "true"
queue: default
priority: 0
replicas: "1"
resources:
  cpu: 1.0
  memory: "0"
  gpu: 1
  other: {}
constraints:
  required: {}
  preferred: {}
  topology: ""
  topology_required: false
  exclude_nodes: []
checkpoint:
  on_stop: false
  on_request: false
  max_interval: "10m"
  directory: ""
command: ["true"]
environment: {}
export: NONE
working_directory: /
artifacts: ""
upload_to: ""
grace: "30s"
retries: 0
retry_backoff: "1s"
timeout: "0s"
preemptible: true
grand_challenge: false
','command line','/','root',0,0,0,1,1,1000,0,1,'done',1796024269123,0,1,0,0,0,37,0,0,1796024269131,1796024269218,0,'all workers ended with exit status 0','{"command":["true"],"program":"/usr/bin/true","sha256":"c79bf44242829108e323378531f4ac839513ca1fba45efd6583643526e1e9fd2","submit_dir":"/","user":"root","machine":"vm","version":"0.1.0","spec":"name: \"true\"\nqueue: default\npriority: 0\nreplicas: \"1\"\nresources:\n  cpu: 1.0\n  memory: \"0\"\n  gpu: 1\n  other: {}\nconstraints:\n  required: {}\n  preferred: {}\n  topology: \"\"\n  topology_required: false\n  exclude_nodes: []\ncheckpoint:\n  on_stop: false\n  on_request: false\n  max_interval: \"10m\"\n  directory: \"\"\ncommand: [\"true\"]\nenvironment: {}\nexport: NONE\nworking_directory: /\nartifacts: \"\"\nupload_to: \"\"\ngrace: \"30s\"\nretries: 0\nretry_backoff: \"1s\"\ntimeout: \"0s\"\npreemptible: true\ngrand_challenge: false\n","exported":[]}','d28ff3d8d7ced8447f79409c79c82929');
INSERT INTO "jobs" VALUES(2,'sleep','default','name: sleep
queue: default
priority: 0
replicas: "1"
resources:
  cpu: 1.0
  memory: "0"
  gpu: 1
  other: {}
constraints:
  required: {}
  preferred: {}
  topology: ""
  topology_required: false
  exclude_nodes: []
checkpoint:
  on_stop: false
  on_request: false
  max_interval: "10m"
  directory: ""
command: [sleep, "300"]
environment: {}
export: NONE
working_directory: /
artifacts: ""
upload_to: ""
grace: "30s"
retries: 0
retry_backoff: "1s"
timeout: "0s"
preemptible: true
grand_challenge: false
','command line','/','root',0,0,0,1,1,1000,0,1,'pending',1796024269266,0,2,0,2,0,4472,0,0,1796024269271,NULL,143,'it was stopped on request; worker 0 on local-0 was killed by signal 15 (Terminated)','{"command":["sleep","300"],"program":"/usr/bin/sleep","sha256":"4add4bb89d8ca0e3b1bd861130ddd7ae0fd9617a8055de0a38c8d2ca1ac95723","submit_dir":"/","user":"root","machine":"vm","version":"0.1.0","spec":"name: sleep\nqueue: default\npriority: 0\nreplicas: \"1\"\nresources:\n  cpu: 1.0\n  memory: \"0\"\n  gpu: 1\n  other: {}\nconstraints:\n  required: {}\n  preferred: {}\n  topology: \"\"\n  topology_required: false\n  exclude_nodes: []\ncheckpoint:\n  on_stop: false\n  on_request: false\n  max_interval: \"10m\"\n  directory: \"\"\ncommand: [sleep, \"300\"]\nenvironment: {}\nexport: NONE\nworking_directory: /\nartifacts: \"\"\nupload_to: \"\"\ngrace: \"30s\"\nretries: 0\nretry_backoff: \"1s\"\ntimeout: \"0s\"\npreemptible: true\ngrand_challenge: false\n","exported":[]}','fe85c3b307ee946e19a030cab9698e3d');
INSERT INTO "jobs" VALUES(3,'sleep','default','name: sleep
queue: default
priority: 0
replicas: "1"
resources:
  cpu: 1.0
  memory: "0"
  gpu: 1
  other: {}
constraints:
  required: {}
  preferred: {}
  topology: ""
  topology_required: false
  exclude_nodes: []
checkpoint:
  on_stop: false
  on_request: false
  max_interval: "10m"
  directory: ""
command: [sleep, "300"]
environment: {}
export: NONE
working_directory: /
artifacts: ""
upload_to: ""
grace: "30s"
retries: 0
retry_backoff: "1s"
timeout: "0s"
preemptible: true
grand_challenge: false
','command line','/','root',0,0,0,1,1,1000,0,1,'running',1796024269400,0,1,0,0,0,0,1796024269413,0,1796024269413,NULL,NULL,'','{"command":["sleep","300"],"program":"/usr/bin/sleep","sha256":"4add4bb89d8ca0e3b1bd861130ddd7ae0fd9617a8055de0a38c8d2ca1ac95723","submit_dir":"/","user":"root","machine":"vm","version":"0.1.0","spec":"name: sleep\nqueue: default\npriority: 0\nreplicas: \"1\"\nresources:\n  cpu: 1.0\n  memory: \"0\"\n  gpu: 1\n  other: {}\nconstraints:\n  required: {}\n  preferred: {}\n  topology: \"\"\n  topology_required: false\n  exclude_nodes: []\ncheckpoint:\n  on_stop: false\n  on_request: false\n  max_interval: \"10m\"\n  directory: \"\"\ncommand: [sleep, \"300\"]\nenvironment: {}\nexport: NONE\nworking_directory: /\nartifacts: \"\"\nupload_to: \"\"\ngrace: \"30s\"\nretries: 0\nretry_backoff: \"1s\"\ntimeout: \"0s\"\npreemptible: true\ngrand_challenge: false\n","exported":[]}','d57905f633145f5654f2b046c94df340');
CREATE TABLE loans (lender TEXT NOT NULL, borrower TEXT NOT NULL, gpu_seconds REAL NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (lender, borrower)) STRICT, WITHOUT ROWID;
CREATE TABLE measured_times (job INTEGER NOT NULL, checkpoint_ms INTEGER, restart_ms INTEGER, killed_after_ms INTEGER, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
CREATE TABLE nodes (name TEXT NOT NULL, pool TEXT NOT NULL, state TEXT NOT NULL, until INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (name)) STRICT, WITHOUT ROWID;
CREATE TABLE pools (name TEXT NOT NULL, node_ms INTEGER NOT NULL, interruptions INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (name)) STRICT, WITHOUT ROWID;
INSERT INTO "pools" VALUES('local',4936,0,'ef30e0e131dc2215f8abd835b71b872a');
CREATE TABLE predicted_run_times (job INTEGER NOT NULL, p10_ms INTEGER NOT NULL, p25_ms INTEGER NOT NULL, p50_ms INTEGER NOT NULL, p75_ms INTEGER NOT NULL, p90_ms INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
CREATE TABLE quota_overrides (user TEXT NOT NULL, until INTEGER NOT NULL, max_gpus INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (user, until)) STRICT, WITHOUT ROWID;
CREATE TABLE reservation_yields (job INTEGER NOT NULL, yields INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (job INTEGER NOT NULL, placement TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
CREATE TABLE row_counts (job INTEGER NOT NULL, attempts INTEGER NOT NULL, events INTEGER NOT NULL, usage INTEGER NOT NULL, measured INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
INSERT INTO "row_counts" VALUES(1,1,3,1,0,'286e5b950ed7cc5dd26296fc7db102bf');
INSERT INTO "row_counts" VALUES(2,2,8,1,0,'14c1f3db8aac8927533fe0c2bd66afd0');
INSERT INTO "row_counts" VALUES(3,1,2,1,0,'af5ce6edf870e6ae779a5efd609b29fc');
CREATE TABLE usage (job INTEGER NOT NULL, gpu_seconds REAL NOT NULL, cost REAL NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job), FOREIGN KEY (job) REFERENCES jobs (id)) STRICT, WITHOUT ROWID;
INSERT INTO "usage" VALUES(1,0.087,0.0,'1943ccf40af5ebcc39be7c0119b8b19c');
INSERT INTO "usage" VALUES(2,4.55399999999999938182e+00,0.0,'65a97131d26eb8d40da8c65f0c36cc9b');
INSERT INTO "usage" VALUES(3,4.435,0.0,'13d0a621cfc6691874e5a54d1398eb12');
CREATE TABLE usage_spans (job INTEGER NOT NULL, attempt INTEGER NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, started INTEGER NOT NULL, ended INTEGER NOT NULL, gpu_seconds REAL NOT NULL, cost REAL NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (job, attempt)) STRICT, WITHOUT ROWID;
INSERT INTO "usage_spans" VALUES(1,0,'default','root',1796024269131,1796024269218,0.087,0.0,'b35919bb37ca53b80e2f96439cffc77e');
INSERT INTO "usage_spans" VALUES(2,0,'default','root',1796024269271,1796024271570,2.299,0.0,'da5f39f1721701d660766a108f92a6b3');
INSERT INTO "usage_spans" VALUES(2,1,'default','root',1796024271593,1796024273848,2.25499999999999944932e+00,0.0,'2cb2d707e44babc439499136d7bfdaad');
CREATE TABLE used_lately (queue TEXT NOT NULL, user TEXT NOT NULL, kind TEXT NOT NULL, seconds REAL NOT NULL, as_of INTEGER NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (queue, user, kind)) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_by_end ON jobs (ended);
CREATE INDEX jobs_by_owner ON jobs (queue, user, state, ended);
CREATE INDEX jobs_unfinished ON jobs (state) WHERE ended IS NULL;
CREATE INDEX usage_spans_by_end ON usage_spans (ended, job, attempt);
