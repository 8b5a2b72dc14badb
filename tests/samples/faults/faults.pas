{ Each line of input makes faults that Free Pascal turns into exceptions, and prints what was caught. }
{$mode objfpc}{$Q+}{$R+}
{$linklib c} { else it is linked statically }
program faults;
uses SysUtils;

type
  PNode = ^TNode;
  TNode = record
    Next: PNode;
    Value: Integer;
  end;

function Follow(Node: PNode): Integer;
begin
  Follow := Node^.Next^.Value;
end;

procedure Store(Node: PNode);
begin
  Node^.Value := 1;
end;

function Divide(A, B: Integer): Integer;
begin
  Divide := A div B;
end;

function Batch: Integer;
var
  I, Count: Integer;
  Node: TNode;
begin
  Count := 0;
  Node.Next := nil;
  Node.Value := 0;
  for I := 1 to 100 do
  begin
    try Count := Count + Follow(@Node) except on EAccessViolation do Inc(Count) end;
    try Store(nil) except on EAccessViolation do Inc(Count) end;
    try
      try Count := Count + Divide(I, I - I) finally Inc(Count) end
    except on EDivByZero do Inc(Count) end;
  end;
  Batch := Count;
end;

var
  Line: string;
begin
  while not Eof do
  begin
    ReadLn(Line);
    WriteLn('caught ', Batch);
    Flush(Output);
  end;
  Halt(3);
end.
