//! A client that lies: a clear error, nothing published, and the server goes on.

use std::time::Duration;

use coload_ddl::{Key, KeyKind, parse_columns, parse_create_table};
use coload_link::{Client, ClientOptions, Message, WIRE_VERSION, WireCompression};
use coload_page::{Page, PageDetail, encode_codes_u32, encode_int};
use coload_receive::ReceiveOptions;
use coload_source::Dialect;
use coload_store::{LoadMode, OnConflict, encode_dictionary};
use coload_transform::DictionaryPolicy;
use coload_types::{Dictionary, Error, Strings, Value, Values};
use coload_wire::{
    Again, BLOCK, Block, BlockContent, CHUNK, ColumnsAre, DONE, FINISH, Finish, HELLO, InputPrint,
    InputShare, JOIN, Join, LoadDescription, PARSED, Parsed, PartitionAccount, RANGE, REREAD_FROM,
    Ranges, RejectLimit, RowSource, RowsAre, SEAL, SEALED, SETTLE, Seal, ServerLoad, TEXT_FRAGMENT,
    TEXT_HEAD_BYTES, TextIs, WELCOME, WIDEN, WIDENED, Welcome, Widen, Work, put_text_head,
};

use crate::setup::{Server, load_remote, options, records, rows};

fn description(salt: u128) -> LoadDescription {
    LoadDescription {
        rows: RowSource::default(),
        began_us: None,
        origin: None,
        table: "t".into(),
        mode: LoadMode::Append,
        on_conflict: OnConflict::Error,
        delete_where: None,
        schema: parse_columns("a BIGINT NOT NULL, b DATE").unwrap(),
        columns_are: ColumnsAre::Given,
        inputs: [InputPrint { name: "x".into(), bytes: 9, modified_us: 0, ends: 0 }]
            .into_iter()
            .collect(),
        dialect: Dialect::default(),
        chunk_bytes: 1 << 20,
        fragments_per_partition: 5,
        dictionaries: DictionaryPolicy::Auto,
        max_rejects: RejectLimit::Count(0),
        work: Work::Partitions,
        salt,
        again: Again::No,
        share: None,
    }
}

struct Liar {
    client: Client,
    welcome: Welcome,
}

impl Liar {
    fn connect(server: &Server, salt: u128) -> Self {
        Liar::begin(server, &description(salt))
    }

    fn begin(server: &Server, description: &LoadDescription) -> Self {
        loop {
            let mut client = client(server);
            let mut hello = vec![WIRE_VERSION];
            hello.extend(description.encode());
            client.open(Message::new(HELLO, hello)).unwrap();
            match receive(&client) {
                Ok(answer) => {
                    assert_eq!(answer.kind, WELCOME);
                    let welcome = Welcome::decode(&answer.bytes).unwrap();
                    return Liar { client, welcome };
                }
                // An attempt before is just being given up.
                Err(Error::Unavailable(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn say(&self, kind: u8, bytes: Vec<u8>) {
        self.client.push(Message::new(kind, bytes)).unwrap();
    }

    fn pages(&self, column: u32, dictionary: Option<Page>, pages: Vec<(u32, Page)>) {
        self.pages_of(0, column, dictionary, pages);
    }

    fn pages_of(
        &self,
        partition: u32,
        column: u32,
        dictionary: Option<Page>,
        pages: Vec<(u32, Page)>,
    ) {
        let content = BlockContent::Pages { dictionary, symbols: Vec::new(), pages };
        self.say(BLOCK, Block { partition, column, content }.encode());
    }

    /// The error that ends the load. A text may be taken before what is wrong with its partition is seen.
    fn error(&self) -> Error {
        loop {
            match receive(&self.client) {
                Err(error) => return error,
                Ok(message) if message.kind == PARSED => {}
                Ok(message) => panic!("the server took it: {}", message.kind),
            }
        }
    }
}

fn client(server: &Server) -> Client {
    let options = ClientOptions {
        address: server.address.clone(),
        outbox_bytes: 1 << 20,
        compression: WireCompression::None,
        authorization: None,
        tls: None,
    };
    Client::new(options).unwrap()
}

fn receive(client: &Client) -> coload_types::Result<Message> {
    for _ in 0..200 {
        if let Some(message) = client.receive(Duration::from_millis(50))? {
            return Ok(message);
        }
    }
    panic!("the server says nothing");
}

fn seal(rows: u32, blocks: u64) -> Vec<u8> {
    seal_of(0, rows, blocks)
}

fn seal_of(partition: u32, rows: u32, blocks: u64) -> Vec<u8> {
    let part = InputShare { file: 0, rows: u64::from(rows), end: 9, ..InputShare::default() };
    let account = PartitionAccount { files: vec![part], ..PartitionAccount::default() };
    let rows_are = RowsAre::AsRead;
    Seal { partition, blocks, page_rows: vec![rows], account, rows_are }.encode()
}

fn finish(rows: u64) -> Vec<u8> {
    Finish { partitions: 1, records: rows, rows, bytes: 9, started_us: 0 }.encode()
}

/// A lie: what is said after the welcome, and a word of the error.
type Lie = (&'static str, fn(&Liar));

/// Says a text of partition 0.
fn say_text(liar: &Liar, fragment: u32, rows: u32, text: &[u8]) {
    let mut message = vec![0; TEXT_HEAD_BYTES];
    put_text_head(&mut message, [0, fragment, rows]);
    message.extend_from_slice(text);
    liar.say(TEXT_FRAGMENT, message);
}

/// Says a text, and waits until it is taken.
fn say_taken(liar: &Liar, fragment: u32) {
    say_text(liar, fragment, 2, b"1,2024-01-01\n2,\n");
    assert_eq!(answer(liar).is, TextIs::Taken);
}

fn answer(liar: &Liar) -> Parsed {
    let message = receive(&liar.client).unwrap();
    assert_eq!(message.kind, PARSED);
    Parsed::decode(&message.bytes).unwrap()
}

const LIES: [Lie; 23] = [
    ("came twice", |l| {
        say_taken(l, 3);
        say_text(l, 3, 1, b"5,2024-01-01\n");
    }),
    ("came twice", |l| {
        say_taken(l, 0);
        l.pages(0, None, vec![(0, encode_int(&[1, 2], None))]);
    }),
    ("came twice", |l| {
        l.pages(1, None, vec![(4, encode_int(&[1, 2], None))]);
        say_text(l, 4, 2, b"1,2024-01-01\n2,\n");
        l.pages(0, None, vec![(4, encode_int(&[1, 2], None))]);
    }),
    ("does not end", |l| say_text(l, 0, 1, b"1,2024-01-01")),
    ("rows in", |l| say_text(l, 0, 0, b"1,2024-01-01\n")),
    ("rows in", |l| say_text(l, 0, u32::MAX, b"1,2024-01-01\n")),
    ("blocks", |l| {
        say_taken(l, 0);
        say_taken(l, 1);
        l.say(SEAL, seal(2, 1));
    }),
    ("other rows", |l| {
        say_taken(l, 0);
        l.say(SEAL, seal(3, 1));
    }),
    ("not sorted", |l| {
        let mut dictionary = encode_int(&[1, 2], None);
        dictionary.bytes = encode_int(&[2, 1], None).bytes;
        l.pages(0, Some(dictionary), vec![(0, encode_codes_u32(&[0, 1], 2))]);
    }),
    ("out of its dictionary", |l| {
        let dictionary = Some(encode_int(&[1, 2], None));
        l.pages(0, dictionary, vec![(0, encode_codes_u32(&[0, 7], 9))]);
    }),
    ("without dictionary", |l| l.pages(0, None, vec![(0, encode_codes_u32(&[0, 1], 2))])),
    ("NOT NULL", |l| {
        let dictionary = Some(encode_int(&[1, 2], None));
        l.pages(0, dictionary, vec![(0, encode_codes_u32(&[0, 2], 2))]);
    }),
    ("do not agree", |l| {
        let mut page = encode_int(&[5, 6], None);
        page.detail = PageDetail::Int { min: 0, max: 6 };
        l.pages(0, None, vec![(0, page)]);
    }),
    ("DATE", |l| l.pages(1, None, vec![(0, encode_int(&[i64::MAX / 2], None))])),
    ("twice", |l| {
        l.pages(0, None, vec![(3, encode_int(&[1], None)), (3, encode_int(&[1], None))]);
    }),
    ("column 2", |l| l.pages(2, None, vec![(0, encode_int(&[1], None))])),
    ("rows", |l| {
        let mut page = encode_int(&[1], None);
        page.rows = u32::MAX;
        l.pages(0, None, vec![(0, page)]);
    }),
    ("other rows", |l| {
        l.pages(0, None, vec![(0, encode_int(&[1, 2], None))]);
        l.pages(1, None, vec![(0, encode_int(&[1], None))]);
        l.say(SEAL, seal(2, 2));
    }),
    ("blocks", |l| {
        l.pages(0, None, vec![(0, encode_int(&[1], None))]);
        l.pages(1, None, vec![(0, encode_int(&[1], None))]);
        l.pages(1, None, vec![(1, encode_int(&[1], None))]);
        l.say(SEAL, seal(1, 1));
    }),
    ("do not agree", |l| {
        l.pages(0, None, vec![(0, encode_int(&[1], None))]);
        l.say(FINISH, finish(1));
    }),
    ("kind 99", |l| l.say(99, vec![1, 2, 3])),
    ("before their load", |l| l.say(CHUNK, vec![0, 0, 1])),
    ("", |l| l.say(BLOCK, vec![0xff; 30])),
];

#[test]
fn a_text_that_is_not_what_was_said_is_handed_back_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let liar = Liar::connect(&server, 1);
    let long = b"9,2024-01-01\n".repeat(100_000);
    let texts: [(u32, &[u8]); 11] = [
        (2, b"1,2024-01-01\n"),
        (1, b"1,2024-01-01\n2,2024-01-01\n"),
        (2, b"1,2024-01-01\nx,2024-01-01\n"),
        (1, b",2024-01-01\n"),
        (1, b"1,2024-13-01\n"),
        (1, b"1,2024-01-01,3\n"),
        (1, b"1,\"2024-01-01\n"),
        (1, b"\n"),
        (3, b"\0\0\xff\n\n\n"),
        (99_999, &long),
        (1, b"99999999999999999999,2024-01-01\n"),
    ];
    for (number, (rows, text)) in texts.into_iter().enumerate() {
        say_text(&liar, 2, rows, text);
        let answer = answer(&liar);
        assert_eq!((answer.fragment, answer.is), (2, TextIs::HandedBack), "text {number}");
    }
    // The same fragment can come then, and the partition is what was taken.
    say_taken(&liar, 2);
    liar.say(SEAL, seal(2, 1));
    assert_eq!(receive(&liar.client).unwrap().kind, SEALED);
    liar.say(FINISH, finish(2));
    assert_eq!(receive(&liar.client).unwrap().kind, DONE);
    let ids = &rows(&server.store, "t")[0];
    assert_eq!(*ids, [Some(Value::Int(1)), Some(Value::Int(2))]);
}

#[test]
fn texts_of_loads_that_have_none_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let checked = parse_create_table("CREATE TABLE t (a BIGINT CHECK (a > 0), b DATE)").unwrap().1;
    let none = [
        LoadDescription { columns_are: ColumnsAre::Inferred, ..description(1) },
        LoadDescription { schema: checked, ..description(2) },
    ];
    for description in none {
        let liar = Liar::begin(&server, &description);
        say_text(&liar, 0, 1, b"1,2024-01-01\n");
        let error = liar.error();
        assert!(error.to_string().contains("has none"), "{error}");
    }
}

#[test]
fn a_text_whose_values_would_not_fit_into_memory_is_handed_back() {
    let folder = tempfile::tempdir().unwrap();
    let small = ReceiveOptions { load_memory: 8 << 20, ..ReceiveOptions::default() };
    let server = Server::start(&folder.path().join("server"), small);
    let liar = Liar::connect(&server, 1);
    let rows = 500_000;
    say_text(&liar, 0, rows, &b"1,\n".repeat(rows as usize));
    assert_eq!(answer(&liar).is, TextIs::HandedBack);
}

#[test]
fn clients_are_told_that_texts_are_taken() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let mut client = client(&server);
    let mut hello = vec![WIRE_VERSION];
    hello.extend(description(2).encode());
    client.open(Message::new(HELLO, hello)).unwrap();
    assert_eq!(receive(&client).unwrap().kind, WELCOME);
    let told = || ServerLoad::decode(&client.receiver_load()).unwrap_or_default();
    for _ in 0..100 {
        // Load is told at once, and of the load that is begun soon.
        if told().text_bytes_max > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(told().load_cpu > 0.0);
    assert!(told().text_bytes_max > 0);
}

#[test]
fn lies_are_told_back_and_publish_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for (number, (word, lie)) in LIES.into_iter().enumerate() {
        let liar = Liar::connect(&server, number as u128 + 1);
        lie(&liar);
        let error = liar.error();
        assert!(error.to_string().contains(word), "lie {number}: {error}");
        assert!(!matches!(error, Error::Unavailable(_)), "lie {number}: {error}");
    }
    assert!(server.store.snapshot().unwrap().tables().is_empty());
    // An honest client is served all the same.
    let file = folder.path().join("t.csv");
    std::fs::write(&file, records(100)).unwrap();
    load_remote(&options(&file, "honest"), &server.remote()).unwrap();
}

#[test]
fn a_partition_that_comes_again_is_not_stored_twice() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let liar = Liar::connect(&server, 1);
    for _ in 0..3 {
        liar.pages(0, None, vec![(0, encode_int(&[1, 2], None))]);
        liar.pages(1, None, vec![(0, encode_int(&[1, 2], None))]);
        liar.say(SEAL, seal(2, 2));
        assert_eq!(receive(&liar.client).unwrap().kind, SEALED);
    }
    liar.say(FINISH, finish(2));
    receive(&liar.client).unwrap();
    let snapshot = server.store.snapshot().unwrap();
    assert_eq!(snapshot.table("t").unwrap().rows(), 2);
}

#[test]
fn connections_of_other_loads_and_attempts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let liar = Liar::connect(&server, 1);
    let mut other = client(&server);
    let join = Join { id: liar.welcome.id, attempt: liar.welcome.attempt + 1 };
    other.open(Message::new(JOIN, join.encode())).unwrap();
    assert!(receive(&other).unwrap_err().to_string().contains("another client"));
    let mut other = client(&server);
    let join = Join { id: coload_store::LoadId::from_u128(9), attempt: 1 };
    other.open(Message::new(JOIN, join.encode())).unwrap();
    assert!(receive(&other).unwrap_err().to_string().contains("not under way"));
    // Whoever goes on with the load takes it from the one before.
    let second = Liar::connect(&server, 1);
    assert_eq!(second.welcome.attempt, liar.welcome.attempt + 1);
    assert!(liar.error().to_string().contains("another client"));
}

#[test]
fn a_client_of_another_version_is_told_what_to_update() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    for (version, word) in
        [(WIRE_VERSION + 1, "update the server"), (WIRE_VERSION - 1, "update the client")]
    {
        let mut client = client(&server);
        let mut hello = vec![version];
        hello.extend(description(1).encode());
        client.open(Message::new(HELLO, hello)).unwrap();
        assert!(receive(&client).unwrap_err().to_string().contains(word));
    }
}

#[test]
fn the_first_attempt_says_when_a_load_began() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let welcome = |began_us: Option<i64>| {
        let mut client = client(&server);
        let mut hello = vec![WIRE_VERSION];
        hello.extend(LoadDescription { began_us, ..description(1) }.encode());
        client.open(Message::new(HELLO, hello)).unwrap();
        Welcome::decode(&receive(&client).unwrap().bytes).unwrap()
    };
    assert_eq!(welcome(Some(77)).began_us, Some(77));
    assert_eq!(welcome(None).began_us, None);
    assert_eq!(welcome(Some(78)).began_us, Some(77));
}

#[test]
fn rows_that_break_a_rule_are_not_acknowledged_whatever_the_client_says() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let columns = "a BIGINT NOT NULL CHECK (a < 5), b DATE";
    let ruled =
        |salt| LoadDescription { schema: parse_columns(columns).unwrap(), ..description(salt) };
    let send = |liar: &Liar, values: &[i64]| {
        let dictionary = Some(encode_int(&[1, 2, 7], None));
        let codes: Vec<u32> = (0..values.len() as u32).collect();
        liar.pages(
            0,
            dictionary.filter(|_| values.len() == 3),
            vec![(
                0,
                match values.len() {
                    3 => encode_codes_u32(&codes, 3),
                    _ => encode_int(values, None),
                },
            )],
        );
        liar.pages(1, None, vec![(0, encode_int(&vec![0; values.len()], None))]);
        liar.say(SEAL, seal(values.len() as u32, 2));
    };
    for values in [&[1, 2, 7][..], &[6, 4]] {
        let liar = Liar::begin(&server, &ruled(values.len() as u128));
        send(&liar, values);
        let error = liar.error();
        assert!(error.to_string().contains("breaks CHECK (a < 5) of table t"), "{error}");
    }
    assert!(server.store.snapshot().unwrap().table("t").is_none());
    let honest = Liar::begin(&server, &ruled(9));
    send(&honest, &[3, 4]);
    assert_eq!(receive(&honest.client).unwrap().kind, SEALED);
    honest.say(FINISH, finish(2));
    receive(&honest.client).unwrap();
    // Who leaves the rules out of what he says of the load does not get on.
    let mut hello = vec![WIRE_VERSION];
    hello.extend(description(11).encode());
    let mut client = client(&server);
    client.open(Message::new(HELLO, hello)).unwrap();
    let error = receive(&client).unwrap_err();
    assert!(error.to_string().contains("does not keep CHECK (a < 5)"), "{error}");
}

#[test]
fn wider_columns_that_are_none_of_the_load_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let guessed = |salt| LoadDescription {
        columns_are: ColumnsAre::Inferred,
        began_us: Some(1),
        ..description(salt)
    };
    let widen = |partitions, columns: &str| {
        Widen { partitions, schema: parse_columns(columns).unwrap() }.encode()
    };
    let lies = [
        (1, "a DECIMAL(18,2) NOT NULL, b DATE"),
        (0, "a DECIMAL(18,2) NOT NULL"),
        (0, "a VARCHAR(20) NOT NULL, b DATE"),
        (0, "a VARCHAR, b DATE"),
        (0, "a DECIMAL(18,2), b DATE"),
        (0, "c DECIMAL(18,2) NOT NULL, b DATE"),
    ];
    for (salt, (partitions, columns)) in lies.into_iter().enumerate() {
        let liar = Liar::begin(&server, &guessed(salt as u128 + 50));
        liar.say(WIDEN, widen(partitions, columns));
        assert!(matches!(liar.error(), Error::Corrupt(_)), "{columns}");
    }
    // Columns that were given.
    let liar = Liar::connect(&server, 70);
    liar.say(WIDEN, widen(0, "a DECIMAL(18,2) NOT NULL, b DATE"));
    assert!(matches!(liar.error(), Error::Corrupt(_)));
    // Types that do not hold what was sent: nothing is published.
    let liar = Liar::begin(&server, &guessed(71));
    liar.pages(0, None, vec![(0, encode_int(&[5, 123_456], None))]);
    liar.pages(1, None, vec![(0, encode_int(&[0, 0], None))]);
    liar.say(SEAL, seal(2, 2));
    assert_eq!(receive(&liar.client).unwrap().kind, SEALED);
    liar.say(RANGE, Vec::new());
    let ranges = Ranges::decode(&receive(&liar.client).unwrap().bytes).unwrap();
    assert_eq!(ranges.columns[0], Some((Value::Int(5), Value::Int(123_456))));
    liar.say(WIDEN, widen(1, "a DECIMAL(5,2) NOT NULL, b DATE"));
    assert_eq!(receive(&liar.client).unwrap().kind, WIDENED);
    // What comes of this attempt has the types before.
    liar.pages(0, None, vec![(1, encode_int(&[7], None))]);
    let again = Liar::begin(&server, &guessed(71));
    let columns = again.welcome.columns.as_ref().unwrap().columns();
    assert_eq!(columns[0].data_type.to_string(), "DECIMAL(5,2)");
    again.say(FINISH, finish(2));
    assert!(again.error().to_string().contains("DECIMAL"), "it was published");
    assert!(server.store.snapshot().unwrap().table("t").is_none());
    // An older client cannot go on with it.
    let mut client = client(&server);
    let mut hello = vec![2];
    hello.extend(guessed(71).encode());
    client.open(Message::new(HELLO, hello)).unwrap();
    assert!(receive(&client).unwrap_err().to_string().contains("update the client"));
}

#[test]
fn texts_that_were_not_asked_for_lack_or_are_of_other_rows_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("server"), ReceiveOptions::default());
    let guessed = |salt| LoadDescription {
        columns_are: ColumnsAre::Inferred,
        began_us: Some(1),
        ..description(salt)
    };
    let mut words = Strings::default();
    [b"x", b"y"].iter().for_each(|word| words.push(*word));
    let words = Dictionary::new(Values::Bytes(words)).unwrap();
    let words = || Some(encode_dictionary(&words).unwrap());
    for (salt, word) in
        (80..).zip(["partition 16777216", "partition 16777217", "lacks", "other records"])
    {
        let liar = Liar::begin(&server, &guessed(salt));
        liar.pages(0, None, vec![(0, encode_int(&[5, 6], None))]);
        liar.pages(1, None, vec![(0, encode_int(&[0, 0], None))]);
        liar.say(SEAL, seal(2, 2));
        assert_eq!(receive(&liar.client).unwrap().kind, SEALED);
        if salt == 80 {
            liar.say(SEAL, seal_of(REREAD_FROM, 2, 0));
            assert!(liar.error().to_string().contains(word));
            continue;
        }
        let schema = parse_columns("a VARCHAR NOT NULL, b DATE").unwrap();
        liar.say(WIDEN, Widen { partitions: 1, schema }.encode());
        assert_eq!(receive(&liar.client).unwrap().kind, WIDENED);
        let liar = Liar::begin(&server, &guessed(salt));
        assert_eq!(liar.welcome.reread_partitions, 1);
        match salt {
            81 => liar.say(SEAL, seal_of(REREAD_FROM + 1, 2, 0)),
            82 => liar.say(FINISH, finish(2)),
            _ => {
                let pages = vec![(0, encode_codes_u32(&[0, 1, 1], 2))];
                liar.pages_of(REREAD_FROM, 0, words(), pages);
                liar.say(SEAL, seal_of(REREAD_FROM, 3, 1));
                assert_eq!(receive(&liar.client).unwrap().kind, SEALED);
                liar.say(FINISH, finish(2));
            }
        }
        let error = liar.error().to_string();
        assert!(error.contains(word), "{error}");
    }
    assert!(server.store.snapshot().unwrap().table("t").is_none());
}

/// A load into a table with a key, of one partition with two columns.
fn keyed_description(salt: u128, kind: KeyKind) -> LoadDescription {
    let key = Key::new(kind, vec![0]).unwrap();
    let schema = description(salt).schema.with_key(Some(key)).unwrap();
    LoadDescription { schema, ..description(salt) }
}

/// Says a partition of one fragment with these keys, with numbers of its rows if there are some, and its order.
fn say_sorted(liar: &Liar, keys: &[i64], numbers: Option<&[i64]>, rows_are: RowsAre) {
    liar.pages(0, None, vec![(0, encode_int(keys, None))]);
    liar.pages(1, None, vec![(0, encode_int(&vec![7; keys.len()], None))]);
    if let Some(numbers) = numbers {
        liar.pages(2, None, vec![(0, encode_int(numbers, None))]);
    }
    let rows = keys.len() as u32;
    let part = InputShare { file: 0, rows: u64::from(rows), end: 9, ..InputShare::default() };
    let account = PartitionAccount { files: vec![part], ..PartitionAccount::default() };
    let blocks = 2 + u64::from(numbers.is_some());
    let seal = Seal { partition: 0, blocks, page_rows: vec![rows], account, rows_are };
    liar.say(SEAL, seal.encode());
}

#[test]
fn an_order_that_is_none_is_told_with_its_partition_and_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), ReceiveOptions::default());
    let (unsorted, numbers) =
        ("the rows of partition 0 are not in the order", "numbers of the rows of partition 0");
    type Lie = (&'static [i64], Option<&'static [i64]>, RowsAre);
    let lies: [(Lie, &str); 8] = [
        ((&[1, 3, 2], None, RowsAre::Sorted), unsorted),
        ((&[2, 1], Some(&[1, 0]), RowsAre::Sorted), unsorted),
        ((&[i64::MAX, i64::MIN], None, RowsAre::Sorted), unsorted),
        ((&[1, 2], Some(&[0, 0]), RowsAre::Sorted), numbers),
        ((&[1, 2], Some(&[0, 2]), RowsAre::Sorted), numbers),
        ((&[1, 2], Some(&[0, -1]), RowsAre::Sorted), numbers),
        ((&[1, 2], Some(&[0]), RowsAre::Sorted), numbers),
        ((&[2, 1], Some(&[1, 0]), RowsAre::AsRead), numbers),
    ];
    for (salt, ((keys, given, rows_are), word)) in (1..).zip(lies) {
        for kind in [KeyKind::Primary, KeyKind::Cluster] {
            let liar = Liar::begin(&server, &keyed_description(salt, kind));
            say_sorted(&liar, keys, given, rows_are);
            let error = liar.error();
            assert!(matches!(error, Error::Corrupt(_)), "{error}");
            assert!(error.to_string().contains(word), "{keys:?} {given:?}: {error}");
            drop(liar);
            // What was sent is not believed later either: the same load goes on with the truth.
            let honest = Liar::begin(&server, &keyed_description(salt, kind));
            assert!(honest.welcome.parts.is_empty());
        }
    }
    // A small page of many numbers.
    let liar = Liar::begin(&server, &keyed_description(98, KeyKind::Primary));
    let mut page = encode_int(&[0; 1024], None);
    page.rows = 1 << 26;
    liar.pages(2, None, vec![(0, page)]);
    assert!(matches!(liar.error(), Error::Corrupt(_) | Error::Limit(_)));
    // A table without a key has no order to be in.
    let liar = Liar::connect(&server, 99);
    say_sorted(&liar, &[1, 2], None, RowsAre::Sorted);
    assert!(liar.error().to_string().contains(unsorted));
    assert!(server.store.snapshot().unwrap().table("t").is_none());
    // Keys that come twice are in order, and who sends them out of order says so.
    for (salt, keys, given, rows_are) in [
        (200, &[1, 2, 2, 5][..], Some(&[3, 0, 2, 1][..]), RowsAre::Sorted),
        (201, &[4, 2, 2, 1], None, RowsAre::AsRead),
    ] {
        let mut of = keyed_description(salt, KeyKind::Cluster);
        of.table = format!("t{salt}");
        let honest = Liar::begin(&server, &of);
        say_sorted(&honest, keys, given, rows_are);
        assert_eq!(receive(&honest.client).unwrap().kind, SEALED);
        // Nothing waits for what is told.
        honest.say(SETTLE, Vec::new());
        assert!(honest.error().to_string().contains("not finished"));
        let honest = Liar::begin(&server, &of);
        honest.say(FINISH, finish(4));
        assert_eq!(receive(&honest.client).unwrap().kind, DONE);
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        let found = rows(&server.store, &of.table).swap_remove(0);
        assert_eq!(found, sorted.into_iter().map(|key| Some(Value::Int(key))).collect::<Vec<_>>());
    }
}
