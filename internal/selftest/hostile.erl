%% A hostile Erlang module, for the self-test: it announces itself, performs the
%% effects that it may, tries everything that it must not, and announces its end.
%%
%%   erl -noinput -noshell -pa DIR -run hostile main NONCE EFFECT KEY=VALUE...
%%
%% The keys and the lines of output are those of the native one (internal/selftest/
%% witness): "KEY ok HEX" or "KEY denied REASON". It judges nothing.
-module(hostile).
-export([main/1]).

main([Nonce, Effect | Args]) ->
    say("begin ~s", [Nonce]),
    answer("effect", file:write_file(Effect, Nonce)),
    lists:foreach(fun(Arg) -> try_one(Arg, Nonce) end, Args),
    say("end ~s", [Nonce]),
    halt(0).

try_one(Arg, Nonce) ->
    {Key, [$= | Value]} = lists:splitwith(fun(C) -> C =/= $= end, Arg),
    case string:trim(Key, trailing, "0123456789") of
        "env" -> answer(Value, variable(Value));
        Action -> answer(Key, catch act(Action, Value, Nonce))
    end.

act("read", Path, _) -> file:read_file(Path);
act("append", Path, Text) ->
    case file:open(Path, [read, write, raw]) of % "append" alone would make the file
        {ok, File} -> {ok, _} = file:position(File, eof), R = file:write(File, Text), file:close(File), R;
        Error -> Error
    end;
act("create", Path, Text) -> file:write_file(Path, Text, [exclusive]);
act("replace", Path, Text) ->
    case file:write_file(Path ++ ".new", Text) of
        ok -> file:rename(Path ++ ".new", Path);
        Error -> Error
    end;
act("make", Path, Text) ->
    case filelib:ensure_dir(Path) of
        ok -> file:write_file(Path, Text);
        Error -> Error
    end;
act("tcp", Address, _) ->
    [Host, Port] = string:split(Address, ":", trailing),
    call(Host, list_to_integer(Port), []);
act("unix", Path, _) -> % an address holds about 100 bytes, a path as many as it likes
    case file:set_cwd(filename:dirname(Path)) of
        ok -> call({local, filename:basename(Path)}, 0, [local]);
        Error -> Error
    end;
act(Action, _, _) -> {error, {no_such_action, Action}}.

call(Host, Port, Options) ->
    case gen_tcp:connect(Host, Port, [binary, {active, false} | Options], 5000) of
        {ok, Socket} -> gen_tcp:recv(Socket, 0, 5000);
        Error -> Error
    end.

variable(Name) ->
    case os:getenv(Name) of
        false -> {error, not_found};
        Value -> {ok, list_to_binary(Value)}
    end.

answer(Key, ok) -> say("~s ok ", [Key]);
answer(Key, {ok, Found}) when is_binary(Found) -> say("~s ok ~s", [Key, hex(Found)]);
answer(Key, {error, Reason}) -> say("~s denied ~0p", [Key, Reason]);
answer(Key, Other) -> say("~s denied ~0p", [Key, Other]).

hex(Bytes) -> [io_lib:format("~2.16.0b", [B]) || <<B>> <= Bytes].

say(Format, Args) -> io:format(Format ++ "~n", Args).
